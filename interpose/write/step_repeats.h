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
  bool ends_step(const Operation& op) {
    if (!op.collective) {
      copied_ = std::max(copied_, op.bytes);
      return false;
    }
    if (text_.size() == 2 * kMost) text_.erase_first(kMost);
    text_.push_back({op.hash, op.bytes, copied_, op.reduction, op.autograd});
    copied_ = 0;
    if (text_.failed()) return false;
    if (++since_search_ >= search_at_) find_period();
    ++since_anchor_;
    const std::size_t i = text_.size() - 1;
    if (!found_ || op.hash != anchor_.hash || i < anchor_.before) {
      if (found_ && since_anchor_ > 4 * anchor_.length + kFirstSearch) found_ = false;
      return false;
    }
    if (gram(i, anchor_.before) != anchor_.gram) return false;
    since_anchor_ = 0;
    return true;
  }

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

  bool large(std::size_t i) const {
    const std::uint64_t bytes = text_.data()[i].bytes;
    return bytes > kScalarBytes && bytes >= largest_ / kSmallReduction;
  }
  bool gradient(std::size_t i) const { return text_.data()[i].reduction && large(i); }
  // True if the operation belongs to a forward pass: a gather on the program's own thread, if
  // another thread does the backward pass; otherwise an operation after a batch of data.
  bool forward(std::size_t i) const {
    const Symbol& s = text_.data()[i];
    if (gathers_) return !s.reduction && !s.autograd && large(i);
    return s.copied > kScalarBytes && s.copied >= largest_copy_ / kSmallCopy;
  }

  std::uint64_t gram(std::size_t i, std::size_t before) const {
    std::uint64_t g = 0;
    for (std::size_t k = i - before; k <= i; ++k) g = mix64(g ^ text_.data()[k].hash);
    return g;
  }

  void find_period() {
    since_search_ = 0;
    search_at_ = std::max(kFirstSearch, std::min(text_.size(), kMost) / 4);
    largest_ = largest_copy_ = 0;
    for (const Symbol& s : text_) largest_ = std::max(largest_, s.reduction ? s.bytes : 0);
    if (largest_ <= kScalarBytes) return;
    std::size_t first = 0;  // everything before it is preparation
    while (!gradient(first)) ++first;
    bool autograd = false;
    std::size_t forward = 0;
    std::size_t gradients = 0;
    for (std::size_t i = 0; i < text_.size(); ++i) {
      if (i > first) largest_copy_ = std::max(largest_copy_, text_.data()[i].copied);
      const Symbol& s = text_.data()[i];
      autograd = autograd || s.autograd;
      forward += !s.reduction && !s.autograd && large(i) ? 1 : 0;
      gradients += gradient(i) ? 1 : 0;
    }
    gathers_ = autograd && 4 * forward >= gradients;
    for (const std::size_t before : kBefore) {
      Unit unit;
      if (!finest(before, unit)) continue;
      settle(unit);
      return;
    }
  }

  // Finds the reduction that recurs most often with the same operations in between.
  bool finest(std::size_t before, Unit& best) {
    places_.clear();
    for (std::size_t i = before; i < text_.size(); ++i) {
      if (gradient(i)) places_.push_back({gram(i, before), static_cast<std::uint32_t>(i)});
    }
    if (places_.failed()) return false;
    std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
      return a.gram != b.gram ? a.gram < b.gram : a.at < b.at;
    });
    for (const Place* first = places_.begin(); first != places_.end();) {
      const Place* last = first;
      while (last != places_.end() && last->gram == first->gram) ++last;
      const auto times = static_cast<std::size_t>(last - first);
      Unit unit;
      if (times >= kFewest && times > best.times && usual(first, last, unit) && brings_data(unit) &&
          holds_all(unit, first, last, times)) {
        unit.times = times;
        best = unit;
      }
      first = last;
    }
    return best.times != 0;
  }

  std::uint64_t sum(std::size_t from, std::size_t to) const {
    std::uint64_t sum = 0;
    for (std::size_t i = from; i <= to; ++i) sum += mix64(text_.data()[i].hash);
    return sum;
  }

  // Finds what is usually between two occurrences. Among the last ones, at least two and a third
  // have to be the same.
  bool usual(const Place* first, const Place* last, Unit& unit) const {
    constexpr std::size_t kLooked = 16;
    std::uint64_t sums[kLooked];
    const std::size_t n = std::min(static_cast<std::size_t>(last - first) - 1, kLooked);
    const Place* from = last - 1 - n;
    for (std::size_t k = 0; k < n; ++k) sums[k] = sum(from[k].at + 1, from[k + 1].at);
    std::size_t most = 0;
    for (std::size_t k = 0; k < n; ++k) {
      const auto same = static_cast<std::size_t>(std::count(sums, sums + n, sums[k]));
      const std::size_t length = from[k + 1].at - from[k].at;
      // If two are equally frequent (an evaluation after every other step), takes the shorter.
      if (same > most || (same == most && length < unit.to - unit.from + 1)) {
        most = same;
        unit.from = from[k].at + 1;
        unit.to = from[k + 1].at;
      }
    }
    return most >= 2 && 3 * most >= n;
  }

  bool brings_data(const Unit& unit) const {
    for (std::size_t i = unit.from; i <= unit.to; ++i) {
      if (forward(i)) return true;
    }
    return false;
  }

  // True if the unit contains all large operations that are reduced repeatedly or gathered often.
  // Otherwise it is only a part of a step, such as a micro-batch. With few occurrences, nothing
  // large may be outside the unit.
  bool holds_all(const Unit& unit, const Place* first, const Place* last, std::size_t times) {
    constexpr std::size_t kYoung = 16;
    constexpr std::size_t kMicroBatches = 8;
    within_.clear();
    for (std::size_t i = unit.from; i <= unit.to; ++i) within_.push_back(text_.data()[i].hash);
    std::sort(within_.begin(), within_.end());
    others_.clear();
    for (std::size_t i = first[1].at; i <= last[-1].at; ++i) {
      const std::uint64_t hash = text_.data()[i].hash;
      if (!large(i) || std::binary_search(within_.begin(), within_.end(), hash)) continue;
      if (times < kYoung) return false;
      others_.push_back({hash, static_cast<std::uint32_t>(i)});
    }
    std::sort(others_.begin(), others_.end(),
              [](const Place& a, const Place& b) { return a.gram < b.gram; });
    std::size_t n = 0;
    for (const Place* o = others_.begin(); o != others_.end(); ++o) {
      n = o != others_.begin() && o[-1].gram == o->gram ? n + 1 : 1;
      const std::size_t often =
          gradient(o->at) ? 3 : std::max<std::size_t>(3, times / kMicroBatches);
      if (n >= often) return false;
    }
    return !others_.failed() && !within_.failed();
  }

  // Chooses as the anchor the reduction before the unit's longest part without a reduction, which
  // is the forward pass.
  void settle(const Unit& unit) {
    std::size_t at = unit.to;
    std::size_t longest = 0;
    std::size_t last = unit.to;  // the previous reduction; for the first one, the unit's last
    std::size_t length = 0;      // since then
    bool data = false;
    for (std::size_t i = unit.from; i <= unit.to; ++i) {
      ++length;
      data = data || forward(i);
      if (!gradient(i)) continue;
      const std::size_t gap = 2 * length + (data ? 1 : 0);
      if (gap > longest) {
        longest = gap;
        at = last;
      }
      last = i;
      length = 0;
      data = false;
    }
    for (const std::size_t before : kBefore) {
      if (before > at) break;
      const std::uint64_t wanted = gram(at, before);
      std::size_t times = 0;
      for (std::size_t i = std::max(unit.from, before); i <= unit.to; ++i) {
        times += gram(i, before) == wanted ? 1 : 0;
      }
      if (times != 1) continue;
      if (!found_) since_anchor_ = 0;
      if (!found_) count_earlier(text_.data()[at].hash, wanted, before);
      anchor_ = {text_.data()[at].hash, wanted, before, unit.to - unit.from + 1};
      found_ = true;
      return;
    }
  }

  // Counts the steps so far, without the current operation.
  void count_earlier(std::uint64_t hash, std::uint64_t wanted, std::size_t before) {
    earlier_ = 0;
    for (std::size_t i = before; i + 1 < text_.size(); ++i) {
      earlier_ += text_.data()[i].hash == hash && gram(i, before) == wanted ? 1 : 0;
    }
  }

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
