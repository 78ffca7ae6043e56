#include "stats/rank_calls.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "interpose/format/thread_kind.h"
#include "stats/totals.h"

namespace tprof::stats {
namespace {

constexpr std::size_t kMostThreads = 4096;
constexpr std::size_t kMostNames = 10'000;
constexpr std::size_t kMostAround = 16;  // of one call
constexpr std::size_t kMostKept = std::size_t{1} << 22;

// Cuts off what emit_nvtx adds, since its numbers change with each call.
std::string_view without_numbers(std::string_view name) {
  return name.substr(0, std::min(name.find(", seq = "), name.find(", op_id = ")));
}

}  // namespace

bool moves_layers(const CallKind& kind) {
  return std::ranges::find(kLayerBuckets, kind.bucket) != std::end(kLayerBuckets);
}

bool collective(const CallKind& kind) {
  return !is_copy(kind.bucket) && kind.bucket != Bucket::P2P;
}

bool RankCalls::Thread::autograd() const {
  return thread_kind(name) == ThreadKind::autograd;
}

bool RankCalls::Thread::loads() const {
  return name.starts_with("pt_data_");
}

std::uint32_t RankCalls::thread_of(std::int64_t tid) {
  const auto [found, added] = tids_.try_emplace(tid, static_cast<std::uint32_t>(threads.size()));
  if (added) threads.push_back({.tid = tid});
  return found->second;
}

void RankCalls::thread(const read::ThreadName& t) {
  if (threads.size() < kMostThreads) threads[thread_of(t.thread)].name = t.name;
}

void RankCalls::call(const read::Event& e) {
  if (e.unfinished || e.captured || e.failed) return;
  if (calls.size() == kMost || threads.size() >= kMostThreads) {
    all = false;
    return;
  }
  const auto [number, added] =
      numbers_.try_emplace({e.bucket, e.comm.value_or(-1), e.count, e.bytes, e.dtype},
                           static_cast<std::uint32_t>(kinds.size()));
  if (added) {
    kinds.push_back(
        {e.bucket, e.comm.value_or(-1), e.count, e.bytes, amounts_of(e).elements, e.dtype});
  }
  const std::uint32_t by = thread_of(e.thread);
  threads[by].calls.push_back(static_cast<std::uint32_t>(calls.size()));
  calls.push_back(
      {e.ts_ns, e.dur_ns, e.collective() ? e.seq : UINT64_MAX, e.site, number->second, by});
}

// A range's line comes after those of its thread's calls within it, and the lines of inner ranges
// come before those of outer ones.
void RankCalls::range(const read::Range& r) {
  const bool open = r.phase == read::Range::Phase::open && r.id.empty();
  const auto thread = tids_.find(r.thread);
  if ((r.phase != read::Range::Phase::closed && !open) || thread == tids_.end()) return;
  const std::optional<StepPhase> phase = phase_of_range(r);
  if (!phase && !names_ranges_) return;
  const Places& of_thread = threads[thread->second].calls;
  const std::int64_t end = open ? std::numeric_limits<std::int64_t>::max() : r.ts_ns + r.dur_ns;
  for (auto i = of_thread.rbegin(); i != of_thread.rend() && calls[*i].ts_ns >= r.ts_ns; ++i) {
    RankCall& call = calls[*i];
    if (call.ts_ns >= end) continue;
    if (phase && !call.range) call.range = phase;
    if (names_ranges_ && moves_layers(kind(*i))) add_name(*i, without_numbers(r.name));
  }
}

void RankCalls::add_name(std::uint32_t call, std::string_view name) {
  auto known = name_numbers_.find(name);
  if (known == name_numbers_.end()) {
    if (names.size() == kMostNames) return;
    known = name_numbers_.emplace(name, static_cast<std::uint32_t>(names.size())).first;
    names.emplace_back(name);
  }
  if (kept_ == kMostKept) return;
  std::vector<std::uint32_t>& all_around = around[call];
  if (all_around.size() == kMostAround || std::ranges::count(all_around, known->second) != 0) {
    return;
  }
  all_around.push_back(known->second);
  ++kept_;
}

read::Amounts RankCalls::amounts(std::uint32_t call) const {
  const CallKind& k = kind(call);
  return {.calls = 1,
          .count = k.count,
          .elements = k.elements,
          .bytes = k.bytes,
          .host_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(calls[call].dur_ns, 0))};
}

Places RankCalls::by_time() const {
  Places sorted(calls.size());
  std::iota(sorted.begin(), sorted.end(), 0U);
  std::ranges::stable_sort(sorted, {}, [&](std::uint32_t i) { return calls[i].ts_ns; });
  return sorted;
}

void RankCalls::let_go() {
  kinds = std::vector<CallKind>();
  calls = std::vector<RankCall>();
  threads = std::vector<Thread>();
  names = std::vector<std::string>();
  around.clear();
  numbers_.clear();
  tids_.clear();
  name_numbers_.clear();
}

std::pair<std::uint64_t, std::uint64_t> RankCalls::autograd_calls() const {
  std::uint64_t in_ledger = 0;
  each_row(rank_, [&](const read::Row& row) {
    if (row.thread == ThreadKind::autograd && read::wants_lines(rank_, row.bucket)) {
      in_ledger += row.amounts.calls;
    }
  });
  std::uint64_t in_lines = 0;
  for (const Thread& t : threads) in_lines += t.autograd() ? t.calls.size() : 0;
  return {in_lines, in_ledger};
}

bool RankCalls::named() const {
  const auto [in_lines, in_ledger] = autograd_calls();
  return (in_lines == 0) == (in_ledger == 0);
}

bool RankCalls::whole() const {
  if (!all || !rank_.footer || !rank_.footer->dropped.empty()) return false;
  bool mixed = false;
  each_row(rank_, [&](const read::Row& row) { mixed = mixed || row.thread == ThreadKind::mixed; });
  const auto [in_lines, in_ledger] = autograd_calls();
  return !mixed && in_lines == in_ledger;
}

}  // namespace tprof::stats
