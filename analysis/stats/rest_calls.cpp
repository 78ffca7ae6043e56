#include "stats/rest_calls.h"

#include <algorithm>
#include <limits>

#include "collect/collectors.h"
#include "interpose/format/thread_kind.h"
#include "stats/totals.h"

namespace tprof::stats {
namespace {

constexpr std::size_t kMostThreads = 4096;

}  // namespace

bool RestCalls::Thread::autograd() const {
  return thread_kind(name) == ThreadKind::autograd;
}

bool RestCalls::Thread::loads() const {
  return name.starts_with("pt_data_");
}

std::uint32_t RestCalls::thread_of(std::int64_t tid) {
  const auto [found, added] = tids_.try_emplace(tid, static_cast<std::uint32_t>(threads.size()));
  if (added) threads.push_back({.tid = tid});
  return found->second;
}

const std::vector<std::uint32_t>* RestCalls::calls_of(std::int64_t tid) const {
  const auto found = tids_.find(tid);
  return found == tids_.end() ? nullptr : &threads[found->second].calls;
}

void RestCalls::thread(const read::ThreadName& t) {
  if (threads.size() < kMostThreads) threads[thread_of(t.thread)].name = t.name;
}

void RestCalls::call(const read::Event& e) {
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
  calls.push_back({e.ts_ns, e.dur_ns, number->second, by});
}

// A range's line comes after those of its thread's calls within it, and the lines of inner ranges
// come before those of outer ones.
void RestCalls::range(const read::Range& r) {
  const bool open = r.phase == read::Range::Phase::open && r.id.empty();
  if (r.phase != read::Range::Phase::closed && !open) return;
  const std::optional<StepPhase> phase = phase_of_range(r);
  const std::vector<std::uint32_t>* of_thread = calls_of(r.thread);
  if (!phase || of_thread == nullptr) return;
  const std::int64_t end = open ? std::numeric_limits<std::int64_t>::max() : r.ts_ns + r.dur_ns;
  for (auto i = of_thread->rbegin(); i != of_thread->rend(); ++i) {
    RankCall& call = calls[*i];
    if (call.ts_ns < r.ts_ns) break;
    if (call.ts_ns < end && !call.range) call.range = phase;
  }
}

void RestCalls::let_go() {
  kinds = std::vector<CallKind>();
  calls = std::vector<RankCall>();
  threads = std::vector<Thread>();
  numbers_.clear();
  tids_.clear();
}

std::pair<std::uint64_t, std::uint64_t> RestCalls::autograd_calls() const {
  std::uint64_t in_ledger = 0;
  each_row(rank_, [&](const read::Row& row) {
    if (row.thread == ThreadKind::autograd && collect::wants_lines(rank_, row.bucket)) {
      in_ledger += row.amounts.calls;
    }
  });
  std::uint64_t in_lines = 0;
  for (const Thread& t : threads) in_lines += t.autograd() ? t.calls.size() : 0;
  return {in_lines, in_ledger};
}

bool RestCalls::named() const {
  const auto [in_lines, in_ledger] = autograd_calls();
  return (in_lines == 0) == (in_ledger == 0);
}

bool RestCalls::whole() const {
  if (!all || !rank_.footer || !rank_.footer->dropped.empty()) return false;
  bool mixed = false;
  each_row(rank_, [&](const read::Row& row) { mixed = mixed || row.thread == ThreadKind::mixed; });
  const auto [in_lines, in_ledger] = autograd_calls();
  return !mixed && in_lines == in_ledger;
}

}  // namespace tprof::stats
