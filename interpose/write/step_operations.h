// Gives the collectives and the copies to the device of all threads, in the order of time and each
// once. Repeats are looked for in these.
#pragma once

#include <algorithm>
#include <cstdint>

#include "interpose/lines/totals.h"
#include "interpose/write/step_repeats.h"

namespace tprof {

class Operations {
 public:
  explicit Operations(const View& view) : view_(view) {}

  // Calls f(operation) for all that began before `before_ns` and had not been given. The caller
  // chooses `before_ns` so that open calls began later, except those that have stood for long.
  template <typename F>
  void each_new(const Progress& p, std::uint64_t before_ns, F&& f) {
    view_.each_thread([&](const ThreadArea& t, std::uint32_t i) {
      given_[i] = std::max(given_[i], p.tail[i]);
      const Record* ring = view_.ring(t);
      if (ring == nullptr) return;
      const std::uint64_t committed = t.committed.load(std::memory_order_acquire);
      const std::uint64_t head = t.head.load(std::memory_order_acquire);
      const std::uint64_t capacity = t.capacity.load(std::memory_order_acquire);
      if (head - given_[i] > capacity) return;
      for (; given_[i] < head; ++given_[i]) {
        const auto r = copy_in_use(ring[given_[i] & (capacity - 1)]);
        const bool is_call = view_.function(r.function) != nullptr;
        if (is_call && (r.txn == 0 || r.txn > committed || r.start_ns >= before_ns)) return;
        Timed op{r.start_ns, {}};
        if (is_call && describe(r, t, op.operation)) new_.push_back(op);
      }
    });
    std::sort(new_.begin(), new_.end(),
              [](const Timed& a, const Timed& b) { return a.start_ns < b.start_ns; });
    for (const Timed& op : new_) f(op.operation);
    new_.clear();
  }

  // Returns the first of a thread's records that has not been given yet.
  std::uint64_t given(std::uint32_t thread) const { return given_[thread]; }

 private:
  struct Timed {
    std::uint64_t start_ns;
    Operation operation;
  };

  bool describe(const Record& r, const ThreadArea& t, Operation& op) const {
    if (!accepted(r.bucket, r.result) || r.captured) return false;
    const Function& f = *view_.function(r.function);
    op.bytes = amount(view_, r.function, r.bucket, r.dtype, r.comm, r.count).bytes;
    op.end_ns = r.start_ns + r.dur_ns;
    op.collective = f.collective;
    if (!f.collective) return r.bucket == Bucket::H2D;
    const std::string_view name = bounded_text(f.name);
    op.reduction = name.find("Reduce") != std::string_view::npos;
    op.autograd = t.kind == ThreadKind::autograd;
    op.hash = mix64(r.count ^ mix64(std::uint64_t{r.function} << 40 ^ std::uint64_t{r.dtype} << 32 ^
                                    std::uint64_t{r.comm}));
    return true;
  }

  View view_;
  Pages<Timed> new_;
  std::uint64_t given_[kMaxThreads] = {};
};

}  // namespace tprof
