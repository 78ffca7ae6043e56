// The calls that a process made last, as its rings hold them whether or not they got a line: the
// last of each thread, the last collective of each communicator, the last send and receive of each
// pair of ranks.
#pragma once

#include <cstdint>

#include "interpose/format/copy_in_use.h"
#include "interpose/lines/lines.h"

namespace tprof {

class LastCalls {
 public:
  // Of the threads whose records these are. A living process may go on meanwhile.
  void look(const View& view) {
    // Threads beyond the last area share one, and then what they did last is not known.
    if (view.threads() == kMaxThreads) return;
    for (std::uint32_t i = 0; i < view.threads(); ++i) {
      const ThreadArea* t = view.thread(i);
      if (t != nullptr) look(view, *t, i);
    }
  }

  // `tid`: of the records of each thread that no marker in its ring names.
  void lines(Text& out, const View& view, const std::uint32_t (&tid)[kMaxThreads]) const {
    for (const Call& call : calls_) {
      if (call.record.function == kMetaVoid || (call.of_thread && listed(call))) continue;
      line(out, view, call, call.tid != 0 ? call.tid : tid[call.thread]);
    }
  }

 private:
  static constexpr std::uint32_t kPlaces = 512;  // most processes need ten
  static constexpr std::uint64_t kSpare = UINT64_MAX;

  struct Call {
    Record record;
    std::uint64_t number;  // in its ring
    std::uint32_t thread;
    std::uint32_t tid;  // 0: not known
    bool of_thread;
  };

  void look(const View& view, const ThreadArea& t, std::uint32_t i) {
    std::uint32_t tid = 0;
    if (const Record* ring = view.ring(t)) {
      const std::uint64_t committed = t.committed.load(std::memory_order_acquire);
      const std::uint64_t head = t.head.load(std::memory_order_acquire);
      const std::uint64_t capacity = t.capacity;
      for (std::uint64_t n = head > capacity ? head - capacity : 0; n < head; ++n) {
        const auto r = copy_in_use(ring[n & (capacity - 1)]);
        std::atomic_thread_fence(std::memory_order_acquire);
        if (t.head.load(std::memory_order_acquire) - n >= capacity) continue;  // written over
        if (r.txn == 0 || r.txn > committed) continue;
        if (r.function == kMetaThread) {
          tid = static_cast<std::uint32_t>(r.count);
        } else {
          take(view, {r, n, i, tid, false});
        }
      }
    }
    const auto spare = copy_in_use(t.spare);
    const std::uint64_t committed = t.committed.load(std::memory_order_acquire);
    if (spare.txn != 0 && spare.txn <= committed) take(view, {spare, kSpare, i, tid, false});
  }

  void take(const View& view, Call call) {
    const Record& r = call.record;
    const bool launch = r.function == kMetaLaunch;
    if (!launch && (r.function == kMetaVoid || view.function(r.function) == nullptr)) return;
    call.of_thread = true;
    keep(call);
    call.of_thread = false;
    if (!launch && accepted(r) && !is_copy(r.bucket)) keep(call);
  }

  static bool accepted(const Record& r) {
    constexpr std::uint64_t kInProgress = 7;  // ncclInProgress
    return r.result == 0 || r.result == kInProgress;
  }

  static bool same_kind(const Call& a, const Call& b) {
    if (a.of_thread != b.of_thread) return false;
    if (a.of_thread) return a.thread == b.thread;
    const bool talk = a.record.bucket == Bucket::P2P;
    if (a.record.comm != b.record.comm || talk != (b.record.bucket == Bucket::P2P)) return false;
    return !talk || (a.record.peer == b.record.peer && a.record.function == b.record.function);
  }

  static bool later(const Call& a, const Call& b) {
    if (a.of_thread) return a.record.start_ns >= b.record.start_ns;
    return a.record.seq >= b.record.seq;
  }

  // In the place of its kind; what finds no place is left out, and so not known.
  void keep(const Call& call) {
    const Record& r = call.record;
    const std::uint64_t kind =
        call.of_thread ? call.thread
                       : std::uint64_t{r.comm} * 64 +
                             (r.bucket == Bucket::P2P
                                  ? static_cast<std::uint32_t>(r.peer) * 3U + r.function + 1
                                  : 0);
    for (std::uint32_t n = 0; n < kPlaces; ++n) {
      Call& at = calls_[(kind * 31 + call.of_thread + n) % kPlaces];
      if (at.record.function == kMetaVoid) {
        at = call;
        return;
      }
      if (!same_kind(at, call)) continue;
      if (later(call, at)) at = call;
      return;
    }
  }

  // As the last of its communicator too.
  bool listed(const Call& thread) const {
    for (const Call& call : calls_) {
      if (!call.of_thread && call.record.function != kMetaVoid && call.thread == thread.thread &&
          call.number == thread.number) {
        return true;
      }
    }
    return false;
  }

  static void line(Text& out, const View& view, const Call& call, std::uint32_t tid) {
    const Record& r = call.record;
    const bool launch = r.function == kMetaLaunch;
    const Function* f = view.function(r.function);
    open_line(out, view, "tprof_last", 'M', tid)
        << ",\"args\":{\"function\":\""
        << (launch ? "cudaGraphLaunch"
                   : std::string_view(f->name, strnlen(f->name, sizeof f->name)))
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

  Call calls_[kPlaces]{};
};

}  // namespace tprof
