#include "export/viewers.h"

#include <algorithm>
#include <tuple>

#include "interpose/format/record.h"
#include "text/text.h"

namespace tprof::trace_export {

namespace {

struct Style {
  std::string_view title;
  std::string_view color;
};

// In bucket order. Calls between GPUs are green, blue or purple, copies to and from the host yellow
// and red, others grey.
constexpr Style kStyles[] = {{"AllGather", "thread_state_running"},
                             {"ReduceScatter", "rail_animation"},
                             {"H2D", "thread_state_iowait"},
                             {"D2H", "bad"},
                             {"AllReduce", "rail_response"},
                             {"Broadcast", "thread_state_runnable"},
                             {"Reduce", "vsync_highlight_color"},
                             {"AlltoAll", "detailed_memory_dump"},
                             {"P2P", "olive"},
                             {"expert parallelism", "background_memory_dump"},
                             {"other collectives", "good"},
                             {"D2D", "yellow"},
                             {"H2H", "grey"},
                             {"Managed", "generic_work"}};
static_assert(std::size(kStyles) == kBucketCount && Bucket::P2P == Bucket{8});

constexpr std::string_view kNccl = "nccl";

const Style& style_of(Bucket bucket) {
  return kStyles[static_cast<std::size_t>(bucket)];
}

}  // namespace

std::string_view color_of(Bucket bucket) {
  return style_of(bucket).color;
}

std::string_view title_of(Bucket bucket) {
  return style_of(bucket).title;
}

// "32 KiB", "9.54 MiB": like text::bytes(), without zero decimals.
static std::string size_for_name(std::uint64_t bytes) {
  std::string size = text::bytes(bytes);
  if (const auto none = size.find(".00 "); none != std::string::npos) size.erase(none, 3);
  return size;
}

CallNames::Name CallNames::of(std::string_view function, Bucket bucket,
                              std::optional<std::uint64_t> bytes) {
  if (function == kGroupName) return {"Group", {}};
  const std::string_view what = is_copy(bucket)               ? title_of(bucket)
                                : function.starts_with(kNccl) ? function.substr(kNccl.size())
                                                              : function;
  if (!bytes) return {what, {}};
  Known& known = sizes_[(*bytes ^ *bytes >> 6 ^ *bytes >> 12 ^ *bytes >> 20) % sizes_.size()];
  if (known.text.empty() || known.bytes != *bytes) known = {*bytes, ' ' + size_for_name(*bytes)};
  return {what, known.text};
}

// The order of viewers: of two that begin together, the longer one comes first.
bool Nesting::before(const Slice& a, const Slice& b) {
  return std::tie(a.begin_ns, b.dur_ns) < std::tie(b.begin_ns, a.dur_ns);
}

// If two slices overlap, the one that loses less ends where the other ends or begins. None loses
// all of its time.
void Nesting::cut(Lane& lane) {
  if (!std::ranges::is_sorted(lane, before)) std::ranges::sort(lane, before);
  std::vector<Slice*> open;  // each within the previous one
  for (Slice& s : lane) {
    while (!open.empty() && open.back()->end_ns() <= s.begin_ns) open.pop_back();
    while (!open.empty() && open.back()->end_ns() < s.end_ns()) {
      Slice& around = *open.back();
      const std::int64_t behind = s.end_ns() - around.end_ns();
      const std::int64_t shared = around.end_ns() - s.begin_ns;
      if (around.begin_ns == s.begin_ns || behind < shared) {
        s.cut_ns += behind;
        break;
      }
      around.cut_ns += shared;
      open.pop_back();
    }
    open.push_back(&s);
  }
  std::erase_if(lane, [](const Slice& s) { return s.cut_ns == 0; });
  lane.shrink_to_fit();
}

void Nesting::finish() {
  for (auto& [number, lane] : lanes_) cut(lane);
  std::erase_if(lanes_, [](const auto& lane) { return lane.second.empty(); });
  last_ = nullptr;
}

std::int64_t Nesting::cut_ns(std::int64_t lane, std::int64_t begin_ns, std::int64_t dur_ns) const {
  const auto of = lanes_.find(lane);
  if (of == lanes_.end()) return 0;
  const Slice wanted{begin_ns, dur_ns, 0};
  const auto at = std::ranges::lower_bound(of->second, wanted, before);
  return at == of->second.end() || before(wanted, *at) ? 0 : at->cut_ns;
}

}  // namespace tprof::trace_export
