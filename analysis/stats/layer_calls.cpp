#include "stats/layer_calls.h"

#include <algorithm>
#include <limits>

namespace tprof::stats {
namespace {

constexpr std::size_t kMostNames = 10'000;
constexpr std::size_t kMostAround = 16;  // of one call
constexpr std::size_t kMostKept = std::size_t{1} << 22;

// Cuts off what emit_nvtx adds, since its numbers change with each call.
std::string_view without_numbers(std::string_view name) {
  return name.substr(0, std::min(name.find(", seq = "), name.find(", op_id = ")));
}

}  // namespace

void LayerCalls::call(const read::Event& e) {
  const std::size_t before = calls.size();
  RestCalls::call(e);
  if (calls.size() == before) return;
  seq.push_back(e.collective() ? e.seq : UINT64_MAX);
  site.push_back(e.site);
}

// A range's line comes after those of its thread's calls within it, and after those of inner
// ranges.
void LayerCalls::range(const read::Range& r) {
  RestCalls::range(r);
  const bool open = r.phase == read::Range::Phase::open && r.id.empty();
  if (r.phase != read::Range::Phase::closed && !open) return;
  const std::vector<std::uint32_t>* of_thread = calls_of(r.thread);
  if (of_thread == nullptr) return;
  const std::int64_t end = open ? std::numeric_limits<std::int64_t>::max() : r.ts_ns + r.dur_ns;
  std::optional<std::uint32_t> number;
  for (auto i = of_thread->rbegin(); i != of_thread->rend(); ++i) {
    const RankCall& c = calls[*i];
    if (c.ts_ns < r.ts_ns) break;
    const Bucket bucket = kinds[c.kind].bucket;
    if (c.ts_ns >= end || (bucket != Bucket::ALLGATHER && bucket != Bucket::RESHARDING)) continue;
    if (!number) {
      const std::string_view name = without_numbers(r.name);
      auto known = name_numbers_.find(name);
      if (known == name_numbers_.end()) {
        if (names.size() == kMostNames) return;
        known = name_numbers_.emplace(std::string(name), static_cast<std::uint32_t>(names.size()))
                    .first;
        names.emplace_back(name);
      }
      number = known->second;
    }
    if (kept_ == kMostKept) return;
    Names& around_it = around[*i];
    if (around_it.size() == kMostAround || std::ranges::count(around_it, *number) != 0) continue;
    around_it.push_back(*number);
    ++kept_;
  }
}

void LayerCalls::device_time(const read::DeviceTime& t) {
  if (t.calls != 1 || !t.comm || !t.seq || device_ns.size() == kMost) return;
  device_ns[{*t.comm, *t.seq}] = static_cast<std::uint64_t>(std::max<std::int64_t>(t.dur_ns, 0));
}

void LayerCalls::let_go() {
  RestCalls::let_go();
  around.clear();
  names = std::vector<std::string>();
  device_ns.clear();
  seq = std::vector<std::uint64_t>();
  site = std::vector<std::int64_t>();
  sites = SiteLines();
  name_numbers_.clear();
}

}  // namespace tprof::stats
