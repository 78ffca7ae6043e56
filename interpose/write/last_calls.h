// A process's last calls, from its rings, with or without lines: the last one of each thread, the
// last collective of each communicator, and the last send and receive of each pair of ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>

#include "interpose/format/ledger.h"
#include "interpose/write/lines.h"

namespace tprof {

class LastCalls {
 public:
  // Adds the last `most` calls of each thread. A living process may go on meanwhile.
  void add_threads(const View& view, std::uint64_t most = UINT64_MAX) {
    view.each_thread([&](const ThreadArea& t, std::uint32_t i) { add_thread(view, t, i, most); });
  }

  // `tid`: of each thread, for records before the first marker in its ring.
  void lines(Text& out, const View& view, const std::uint32_t (&tid)[kMaxThreads]) const {
    for (const Call& call : kept()) {
      if (call.of_thread && listed(call)) continue;
      line(out, view, call, call.tid != 0 ? call.tid : tid[call.thread]);
    }
  }

 private:
  static constexpr std::uint32_t kPlaces = 512;  // most processes need ten
  static constexpr std::uint64_t kOutsideRing = UINT64_MAX;

  struct Call {
    Record record;
    std::uint64_t number;  // position in its ring
    std::uint32_t thread;
    std::uint32_t tid;  // 0: not known
    bool of_thread;
  };

  void add_thread(const View& view, const ThreadArea& t, std::uint32_t i, std::uint64_t most) {
    std::uint32_t tid = 0;
    const RingNow ring = view.ring_now(t);
    const std::uint64_t looked =
        ring.record == nullptr ? 0 : std::min({most, ring.capacity, ring.head});
    for (std::uint64_t n = ring.head - looked; n < ring.head; ++n) {
      const Record r = ring[n];
      std::atomic_thread_fence(std::memory_order_acquire);
      if (t.head.load(std::memory_order_acquire) - n >= ring.capacity) continue;  // written over
      if (!ring.closed(r)) continue;
      if (r.function == kMetaThread) {
        tid = static_cast<std::uint32_t>(r.count);
      } else {
        add(view, {r, n, i, tid, false});
      }
    }
    const auto outside = copy_in_use(t.outside_ring);
    const std::uint64_t committed = t.committed.load(std::memory_order_acquire);
    if (outside.txn != 0 && outside.txn <= committed)
      add(view, {outside, kOutsideRing, i, tid, false});
  }

  void add(const View& view, Call call) {
    const Record& r = call.record;
    const bool launch = r.function == kMetaLaunch;
    if (!launch && (r.function == kMetaVoid || view.function(r.function) == nullptr)) return;
    call.of_thread = true;
    keep(call);
    call.of_thread = false;
    if (!launch && nccl_accepted(r.result) && !is_copy(r.bucket)) keep(call);
  }

  // Last calls are those of a thread, of a communicator, or of a pair of ranks and a direction.
  using Kind = std::tuple<bool, std::uint32_t, std::int32_t, std::uint32_t>;
  static Kind kind_of(const Call& call) {
    const Record& r = call.record;
    if (call.of_thread) return {true, call.thread, 0, 0};
    if (r.bucket != Bucket::P2P) return {false, r.comm, 0, 0};
    return {false, r.comm, r.peer, r.function};
  }

  static bool later(const Call& a, const Call& b) {
    if (a.of_thread) return a.record.start_ns >= b.record.start_ns;
    return a.record.seq >= b.record.seq;
  }

  std::span<const Call> kept() const { return {calls_, count_}; }

  // Keeps the last call of its kind. Without a free place, the call is left out.
  void keep(const Call& call) {
    const Kind kind = kind_of(call);
    std::size_t place = 0;
    while (place < count_ && kind_of(calls_[place]) != kind) ++place;
    if (place == kPlaces || (place < count_ && !later(call, calls_[place]))) return;
    calls_[place] = call;
    count_ = std::max(count_, place + 1);
  }

  // True if the call is also listed as the last one of its communicator.
  bool listed(const Call& thread) const {
    return std::ranges::any_of(kept(), [&](const Call& call) {
      return !call.of_thread && call.thread == thread.thread && call.number == thread.number;
    });
  }

  static void line(Text& out, const View& view, const Call& call, std::uint32_t tid) {
    const Record& r = call.record;
    const bool launch = r.function == kMetaLaunch;
    open_line(out, view, LineKind::last, tid)
        << ",\"args\":{\"function\":\"" << (launch ? kLaunchName : view.function_name(r.function))
        << "\",\"cat\":\"" << (launch ? kGraphCategory : bucket_name(r.bucket)) << "\",\"ts\":";
    timestamp(out, view, r.start_ns) << ",\"dur\":";
    out.micros(r.dur_ns) << ',';
    result_args(out, r, false);
    if (launch) {
      out << "\"graph\":" << r.comm;
    } else {
      call_args(out, view, r, 0);
    }
    out << "}},\n";
  }

  Call calls_[kPlaces];
  std::size_t count_ = 0;
};

}  // namespace tprof
