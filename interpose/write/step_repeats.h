// Finds the operation that ends each step among a process's calls, if steps are not marked. A step
// reduces its gradients, and its last reduction is the same operation in each step; the preceding
// operations distinguish it from others of its kind. (The reader finds more, since it has the whole
// run: analysis/steps/period.h.)
//
// It has to run in the process, since TPROF_SCHEDULE opens and closes its windows by these steps.
//
// Its cost is bounded: the last 16,384 collectives are searched whenever their number has grown by
// a quarter, in some milliseconds of the writer's thread. Otherwise an operation costs a
// comparison.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "interpose/base/hash.h"
#include "interpose/base/pages.h"
#include "interpose/format/step_mark.h"
#include "interpose/write/totals.h"

namespace tprof {

struct Operation {
  std::uint64_t hash;  // of function, communicator, count and type
  std::uint64_t bytes;
  std::uint64_t end_ns;
  bool collective;  // else a copy to the device
  bool reduction;
  bool autograd;  // by a thread that does backward passes
};

class Repeats {
 public:
  // Takes operations in order of time. Returns true if a step ended with this one.
  bool ends_step(const Operation& op);

  bool found() const { return found_; }
  // The number of steps that had ended before the period was found, if they were like the others.
  std::size_t earlier() const { return earlier_; }

 private:
  struct Symbol {
    std::uint64_t hash;
    std::uint64_t bytes;
    std::uint64_t copied;  // bytes of the largest copy to the device before it
    bool reduction;
    bool autograd;
  };
  struct Place {
    std::uint64_t gram;
    std::uint32_t at;
  };
  struct Anchor {
    std::uint64_t hash, gram;
    std::size_t before;  // operations before the anchor that are compared
    std::size_t length;  // collectives in a step
  };
  // One step: the operations from `from` to `to`, the recurring one.
  struct Unit {
    std::size_t from = 0, to = 0, times = 0;
  };

  static constexpr std::size_t kMost = 16384;
  static constexpr std::size_t kFirstSearch = 32;
  static constexpr std::size_t kBefore[] = {0, 1, 2, 4, 8, 16, 32};
  static constexpr std::size_t kFewest = 6;  // occurrences needed for a period

  bool large(std::size_t i) const;
  bool gradient(std::size_t i) const { return text_.data()[i].reduction && large(i); }
  // True if the operation belongs to a forward pass: a gather on the program's own thread, if
  // another thread does the backward pass; otherwise an operation after a batch of data.
  bool forward(std::size_t i) const;

  std::uint64_t gram(std::size_t i, std::size_t before) const;

  void find_period();

  // Finds the reduction that recurs most often with the same operations in between.
  bool finest(std::size_t before, Unit& best);

  std::uint64_t sum(std::size_t from, std::size_t to) const;

  // Finds what is usually between two occurrences. Among the last ones, at least two and a third
  // have to be the same.
  bool usual(const Place* first, const Place* last, Unit& unit) const;

  bool brings_data(const Unit& unit) const;

  // True if the unit contains all large operations that are reduced repeatedly or gathered often.
  // Otherwise it is only a part of a step, such as a micro-batch. With few occurrences, nothing
  // large may be outside the unit.
  bool holds_all(const Unit& unit, const Place* first, const Place* last, std::size_t times);

  // Chooses as the anchor the reduction before the unit's longest part without a reduction, which
  // is the forward pass.
  void settle(const Unit& unit);

  // Counts the steps so far, without the current operation.
  void count_earlier(std::uint64_t hash, std::uint64_t wanted, std::size_t before);

  Pages<Symbol> text_;
  Pages<Place> places_;
  Pages<Place> others_;
  Pages<std::uint64_t> within_;
  std::uint64_t largest_ = 0;       // bytes of the largest reduction
  std::uint64_t largest_copy_ = 0;  // bytes of the largest copy since the first gradient
  std::uint64_t copied_ = 0;
  bool gathers_ = false;  // in its forward passes
  std::size_t since_search_ = 0;
  std::size_t search_at_ = kFirstSearch;
  std::size_t since_anchor_ = 0;
  Anchor anchor_{};
  bool found_ = false;
  std::size_t earlier_ = 0;
};

// Iterates over the collectives and copies to the device of all threads, in order of time: the
// input for Repeats.
class Operations {
 public:
  explicit Operations(const View& view) : view_(view) {}

  // Calls f(operation) for all new ones that began before `before_ns`. The caller chooses
  // `before_ns` so that open calls began later, except long ones.
  template <typename F>
  void each_new(const Progress& p, std::uint64_t before_ns, F&& f) {
    view_.each_thread([&](const ThreadArea& t, std::uint32_t i) {
      given_[i] = std::max(given_[i], p.tail[i]);
      const RingNow ring = view_.ring_now(t);
      if (ring.record == nullptr || ring.overrun(given_[i])) return;
      for (; given_[i] < ring.head; ++given_[i]) {
        const Record r = ring[given_[i]];
        const bool is_call = view_.function(r.function) != nullptr;
        if (is_call && (!ring.closed(r) || r.start_ns >= before_ns)) return;
        Timed op{r.start_ns, {}};
        if (is_call && describe(r, t, op.operation)) new_.push_back(op);
      }
    });
    std::sort(new_.begin(), new_.end(),
              [](const Timed& a, const Timed& b) { return a.start_ns < b.start_ns; });
    for (const Timed& op : new_) f(op.operation);
    new_.clear();
  }

  // Returns the first of a thread's records that has not been visited yet.
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
