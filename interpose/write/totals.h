// The sum of all threads' ledgers, for a tprof_ledger line.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "interpose/base/pages.h"
#include "interpose/format/ledger.h"
#include "interpose/format/view.h"

namespace tprof {

struct Total {
  LedgerKey key;
  LedgerValues values;
  std::uint64_t unfinished;  // calls that never returned
  LedgerValues timed{};      // of RowKind::timed
  LedgerValues exposed{};    // of RowKind::exposed
};

inline void add(LedgerValues& to, const LedgerValues& values) {
  to.calls += values.calls;
  to.count += values.count;
  to.host_ns += values.host_ns;
  to.host_ns_max = std::max(to.host_ns_max, values.host_ns_max);
  to.failed += values.failed;
}

// Sorts by key and sums equal keys. The host does not know the times of replays.
[[gnu::cold]] inline void merge_totals(Pages<Total>& totals) {
  const auto order = [](const Total& t) { return std::pair(t.key.low(), t.key.high()); };
  std::sort(totals.begin(), totals.end(),
            [&](const Total& a, const Total& b) { return order(a) < order(b); });
  totals.join([&](Total& last, const Total& t) {
    if (order(last) != order(t)) return false;
    add(last.values, t.values);
    add(last.timed, t.timed);
    add(last.exposed, t.exposed);
    last.unfinished += t.unfinished;
    return true;
  });
}

inline LedgerKey key_of(const View& view, const Record& r) {
  LedgerKey key{};
  key.function = r.function;
  key.bucket = r.bucket;
  key.dtype = r.dtype;
  key.mode = r.captured ? Mode::captured : Mode::direct;
  key.bytes_class = bytes_class(amount(view, r.function, r.bucket, r.dtype, r.comm, r.count).bytes);
  key.host_memory = static_cast<HostMemory>(r.host_memory);
  key.comm = r.comm;
  return key;
}

// Adds each graph's contents times its launches, including those of executable graphs with this
// content.
[[gnu::cold]] inline void add_replays(const View& view, Pages<Total>& totals) {
  const std::uint32_t graphs = View::entries(view.head().graphs) + 1;
  if (graphs == 1) return;
  Pages<std::uint64_t> launches;  // by content
  for (std::uint32_t i = 0; i < graphs; ++i) launches.push_back(0);
  if (launches.failed()) return totals.fail();
  for (const Total& t : totals) {
    if (t.key.function != kMetaLaunch) continue;
    const Graph* launched = view.graph(t.key.graph);
    if (launched == nullptr) continue;
    const bool executable = launched->kind == GraphKind::executable;
    const std::uint32_t content = executable ? launched->source : t.key.graph;
    if (content < graphs) launches.data()[content] += t.values.calls;
  }
  const std::size_t rows = totals.size();
  for (std::size_t i = 0; i < rows; ++i) {
    Total replay = totals.begin()[i];
    if (replay.key.mode != Mode::in_graph || replay.key.graph >= graphs) continue;
    const std::uint64_t n = launches.data()[replay.key.graph];
    if (n == 0) continue;
    replay.key.mode = Mode::replayed;
    replay.values = {replay.values.calls * n, replay.values.count * n, 0, 0, 0};
    replay.unfinished = 0;
    replay.timed = {};
    replay.exposed = {};
    totals.push_back(replay);
  }
}

// Returns the kind of thread that made a row's calls. A graph's calls count for the thread that
// launches it.
inline ThreadKind kind_of_calls(const LedgerKey& key, const ThreadArea& thread) {
  const bool call = key.function < kMaxDataFunctions && key.mode != Mode::in_graph;
  return call ? thread.kind : ThreadKind::other;
}

// Collects all rows of all threads, including replays, each key once per graph. Includes open calls
// without a record; for others see each_open_call().
[[gnu::cold]] inline void collect_totals(const View& view, Pages<Total>& totals) {
  totals.clear();
  view.each_row([&](const LedgerRow& row, const ThreadArea& thread) {
    const LedgerValues values = read_row(row, thread.committed);
    if (values.calls + values.failed == 0) return;
    LedgerKey key = key_of(row);
    const RowKind kind = std::exchange(key.kind, RowKind::counted);
    if (kind != RowKind::timed && kind != RowKind::exposed) key.thread = kind_of_calls(key, thread);
    if (key.function == kOtherFunctions) key.thread = ThreadKind::mixed;
    if (kind == RowKind::counted) totals.push_back({key, values, 0});
    if (kind == RowKind::waiting) totals.push_back({key, {}, values.calls});
    if (kind == RowKind::timed) totals.push_back({key, {}, 0, values});
    if (kind == RowKind::exposed) totals.push_back({key, {}, 0, {}, values});
  });
  merge_totals(totals);
  add_replays(view, totals);
}

// Calls f(record, thread) for every call that has not returned (or whose group has not ended). Its
// thread may be running: a record that changes while it is copied is not open.
template <typename F>
void each_open_call(const View& view, F&& f) {
  view.each_thread([&](const ThreadArea& t, std::uint32_t) {
    const auto if_open = [&](const Record& shared) {
      const std::uint64_t committed = t.committed.load(std::memory_order_acquire);
      const auto r = copy_in_use(shared);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (r.function == kMetaVoid || (r.txn != 0 && r.txn <= committed)) return;
      const auto again = copy_in_use(shared);
      if (again.function == r.function && again.start_ns == r.start_ns && again.txn == r.txn) {
        f(r, t);
      }
    };
    const RingNow ring = view.ring_now(t);
    const std::uint64_t tail = t.tail.load(std::memory_order_acquire);
    // Records below `tail` are closed; a slot above `head` may be half written.
    const bool none = ring.record == nullptr || ring.overrun(tail);
    for (std::uint64_t n = none ? ring.head : tail; n < ring.head; ++n) {
      if_open(ring.record[n & (ring.capacity - 1)]);
    }
    if_open(t.outside_ring);
  });
}

// Calls f(record, tid) for every unfinished call of a communicator's life.
template <typename F>
void each_phase(const View& view, F&& f) {
  for (const Phase& phase : view.head().phase) {
    const std::uint64_t began_ns = phase.began_ns.load(std::memory_order_acquire);
    if (began_ns == 0) continue;
    const auto* closer = view.at<ThreadArea>(phase.closer.load(std::memory_order_acquire));
    const std::uint64_t committed = closer == nullptr ? 0 : closer->committed.load();
    const auto r = copy_in_use(phase.record);
    const std::uint32_t tid = phase.tid;
    std::atomic_thread_fence(std::memory_order_acquire);
    if (phase.began_ns.load(std::memory_order_relaxed) != began_ns) continue;
    if (r.txn == 0 || r.txn > committed) f(r, tid);
  }
}

}  // namespace tprof
