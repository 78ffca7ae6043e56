// Finds steps in the running program, by marks or repeats, and writes a line for each. It sees what
// the writer's thread drains, and costs the hot path nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <tuple>

#include "interpose/base/clock.h"
#include "interpose/format/step_mark.h"
#include "interpose/write/ledger_lines.h"
#include "interpose/write/range_lines.h"
#include "interpose/write/step_intervals.h"
#include "interpose/write/step_repeats.h"
#include "interpose/write/step_windows.h"

namespace tprof {

// Collects the calls of each step for its line, tprof_step. A call belongs to the step in which it
// began. Exact if no record was lost.
struct StepRow {
  std::uint64_t from_ns;  // when the step began
  LedgerKey key;
  LedgerValues values;
};

// The calls of steps that have no line yet.
class StepRows {
 public:
  void add(const StepInterval& step, const LedgerKey& key, std::uint64_t count,
           std::uint64_t host_ns) {
    rows_.push_back({step.from_ns, key, {1, count, host_ns, host_ns, 0}});
    if (rows_.size() >= merge_at_) merge();
  }

  // Moves the rows of one step into `totals`. Returns false if some are missing for lack of memory.
  bool take(const StepInterval& step, Pages<Total>& totals) {
    merge();
    totals.clear();
    rows_.erase_if([&](const StepRow& row) {
      if (row.from_ns == step.from_ns) totals.push_back({row.key, row.values, 0});
      return row.from_ns <= step.from_ns;
    });
    const bool whole = !rows_.failed() && !totals.failed();
    if (rows_.size() == 0) rows_.clear();
    merge_totals(totals);
    return whole;
  }

 private:
  static constexpr std::size_t kFirstMerge = 4096;

  void merge() {
    const auto order = [](const StepRow& r) {
      return std::tuple(r.from_ns, r.key.low(), r.key.high());
    };
    std::sort(rows_.begin(), rows_.end(),
              [&](const StepRow& a, const StepRow& b) { return order(a) < order(b); });
    rows_.join([&](StepRow& last, const StepRow& row) {
      const bool alike = order(last) == order(row);
      if (alike) tprof::add(last.values, row.values);
      return alike;
    });
    merge_at_ = std::max(kFirstMerge, 2 * rows_.size());
  }

  Pages<StepRow> rows_;
  std::size_t merge_at_ = kFirstMerge;
};

// `launches`: launches of graphs, whose calls are not in rows. `lost`: calls may be missing.
// `found`: the step was not marked.
inline void step_line(Text& out, const View& view, const StepInterval& step,
                      const Pages<Total>& rows, std::uint64_t launches, bool lost, bool found) {
  open_line(out, view, LineKind::step, 0) << ",\"args\":{\"step\":" << step.step << ",\"ts\":";
  timestamp(out, view, step.from_ns) << ",\"dur\":";
  out.micros(step.to_ns - step.from_ns);
  if (launches != 0) out << ",\"launches\":" << launches;
  if (lost) out << ",\"lost\":true";
  if (found) out << ",\"found\":\"period\"";
  out << ",\"rows\":[";
  Comma comma;
  for (const Total& t : rows) {
    if (t.key.function == kMetaLaunch) continue;
    row_key(out << comma.next(), view, t.key);
    row_thread(out, t.key.thread);
    row_amounts(out, view, t);
    out << ",\"host_ns\":" << t.values.host_ns << '}';
  }
  out << "]}},\n";
}

class Steps {
 public:
  explicit Steps(const View& view) : view_(view), operations_(view), windows_(view.head().windows) {
    parse_step_mark(bounded_text(view.head().step_mark), mark_);
    finds_ = mark_.by == StepBy::period ||
             (mark_.by == StepBy::automatic && windows_.wanted());  // until a mark is seen
    // The first step begins with the trace: how much of it is preparation is unknown.
    if (mark_.by == StepBy::call) steps_.add(-1, view.head().base_mono_ns, StepInterval::kOpen);
  }

  bool wanted() const { return mark_.by != StepBy::off; }

  // Looks for marks in all that can be drained now, and returns how far each thread's records may
  // be drained, so that a call comes after its step's mark. `last`: no marks follow after here;
  // null: they do.
  const std::uint64_t* begin(const Progress& p, const std::uint64_t* last) {
    find_marks(p, last != nullptr);
    for (std::uint32_t i = 0; last != nullptr && i < kMaxThreads; ++i) {
      limit_[i] = std::min(limit_[i], last[i]);
    }
    return limit_;
  }

  // Takes a closed record that counts.
  void record(const Record& r, const ThreadArea& t) {
    if (!wanted()) return;
    const StepInterval* step = steps_.at(r.start_ns);
    if (step == nullptr) return;
    LedgerKey key{};
    if (r.function == kMetaLaunch) {
      if (r.result == 0) key.function = kMetaLaunch;
    } else if (view_.function(r.function) != nullptr && accepted(r.bucket, r.result) &&
               r.captured == 0) {
      key = key_of(view_, r);
      key.thread = kind_of_calls(key, t);
    }
    if (key.function != 0) rows_.add(*step, key, r.count, r.dur_ns);
  }

  // Call this after draining. Writes lines for the steps that can't get further calls, within their
  // part of the quota.
  void end(Text& out, Progress& p) {
    if (!wanted()) return;
    const std::uint64_t quota = view_.head().quota / kStepQuotaDivisor;
    const std::uint64_t lost = records_lost();
    if (lost != lost_before_) lost_until_ns_ = now_ns();
    lost_before_ = lost;
    StepInterval step;
    while (steps_.take(std::min(began_ns_, oldest_open_ns_), step)) {
      const bool whole = rows_.take(step, totals_);
      std::uint64_t launches = 0;
      for (const Total& t : totals_) {
        if (t.key.function == kMetaLaunch) launches += t.values.calls;
      }
      const std::size_t before = out.size();
      step_line(out, view_, step, totals_, launches, step.from_ns <= lost_until_ns_ || !whole,
                finds_);
      const std::uint64_t bytes = out.size() - before;
      const bool fits = quota == 0 || p.written.step_bytes + bytes <= quota;
      fits ? void(p.written.step_bytes += bytes) : out.cut(before);
      ++(fits ? p.written.steps : p.steps_dropped);
    }
  }

 private:
  void find_marks(const Progress& p, bool last) {
    began_ns_ = now_ns();
    if (windows_.adopt() && windows_.wanted() && !seen_) finds_ = mark_.by == StepBy::automatic;
    if (!wanted()) {
      for (std::uint64_t& limit : limit_) limit = UINT64_MAX;
      return;
    }
    oldest_open_ns_ = began_ns_;
    each_open_call(view_, [&](const Record& r, const ThreadArea&) {
      oldest_open_ns_ = std::min(oldest_open_ns_, r.start_ns);
    });
    view_.each_thread([&](const ThreadArea& t, std::uint32_t i) {
      limit_[i] = t.head.load(std::memory_order_acquire);
    });
    const bool ranges = mark_.by == StepBy::automatic || mark_.by == StepBy::range;
    if (ranges) {
      // Open ranges first: one that is closed meanwhile is then found in its ring.
      steps_.forget_seen();
      each_open_range(view_, [&](const OpenRange& r, bool) { add_range(r, StepInterval::kOpen); });
    }
    if (mark_.by != StepBy::period) {
      view_.each_thread([&](const ThreadArea& t, std::uint32_t i) {
        limit_[i] = std::min(limit_[i], scan(t, p.tail[i]));
      });
    }
    if (ranges) add_marked();
    if (finds_) find(p, last);
    if (ranges && !by_marks_ && !finds_) steps_.drop_unseen();
    windows_.follow(steps_.all(), mark_.by == StepBy::call || seen_ || by_marks_);
  }

  // Returns how many calls and ranges have no record because their ring was full.
  std::uint64_t records_lost() const {
    std::uint64_t lost = 0;
    view_.each_row([&](const LedgerRow& row, const ThreadArea& t) {
      const std::uint8_t function = key_of(row).function;
      if (function == kMetaDropped || function == kMetaRangeDropped) {
        lost += read_row(row, t.committed).calls;
      }
    });
    return lost;
  }

  struct Marked {
    std::int64_t number;
    std::uint64_t from_ns, to_ns;
  };

  void add_range(const OpenRange& r, std::uint64_t to_ns) {
    std::int64_t number = -1;
    if (!is_step(mark_, range_name(r), number)) return;
    if (finds_) steps_.abandon();
    finds_ = false;
    seen_ = true;
    marked_.push_back({number, r.start_ns, to_ns});
  }

  // Open ranges were scanned before closed ones, and threads one after the other, so this sorts the
  // marks by time first.
  void add_marked() {
    if (marked_.size() == 0) return;
    const std::uint64_t lost = records_lost();
    std::sort(marked_.begin(), marked_.end(),
              [](const Marked& a, const Marked& b) { return a.from_ns < b.from_ns; });
    for (const Marked& m : marked_) {
      steps_.add(m.number, m.from_ns, m.to_ns, lost != lost_at_mark_);
    }
    marked_.clear();
    lost_at_mark_ = lost;
  }

  // Finds unmarked steps. Only visited records are drained, but an open call delays this by at most
  // kStands.
  void find(const Progress& p, bool last) {
    constexpr std::uint64_t kStands = 1'000'000'000;
    const std::uint64_t before_ns =
        last ? UINT64_MAX : std::max(oldest_open_ns_, began_ns_ - kStands);
    operations_.each_new(p, before_ns, [&](const Operation& op) {
      const bool found = repeats_.found();
      const bool ends = repeats_.ends_step(op);
      if (!found && repeats_.found()) steps_.had_ended(repeats_.earlier());
      if (ends) {
        steps_.cut(-1, op.end_ns + 1);
      } else if (found && !repeats_.found()) {
        steps_.abandon();
      }
    });
    view_.each_thread([&](const ThreadArea&, std::uint32_t i) {
      limit_[i] = std::min(limit_[i], operations_.given(i));
    });
  }

  // Returns the first record not scanned. It may be closed before the drain gets there.
  std::uint64_t scan(const ThreadArea& t, std::uint64_t from) {
    const RingNow ring = view_.ring_now(t);
    if (ring.record == nullptr) return from;
    if (ring.overrun(from)) return ring.head;
    for (std::uint64_t n = from; n < ring.head; ++n) {
      const Record r = ring[n];
      if (!ring.closed(r)) return n;
      if (mark_.by == StepBy::call) {
        end_of_call(r);
      } else if (r.function == kMetaRange) {
        closed_range(r, ring, n);
      }
    }
    return ring.head;
  }

  void end_of_call(const Record& r) {
    const Function* f = view_.function(r.function);
    if (f == nullptr || bounded_text(f->name) != mark_.name) return;
    if (mark_.count != 0 && r.count != mark_.count) return;
    if (r.captured || !accepted(r.bucket, r.result)) return;
    const std::uint64_t end = r.start_ns + r.dur_ns;
    steps_.cut(-1, end + 1);
  }

  void closed_range(const Record& first, const RingNow& ring, std::uint64_t n) {
    RangeRecord r;
    std::memcpy(&r, &first, sizeof r);
    OpenRange range{};
    if (!read_range(ring, r, ++n, range)) return;
    if (static_cast<RangeKind>(r.kind) != RangeKind::mark) {
      add_range(range, r.start_ns + r.dur_ns);
    } else if (mark_.by == StepBy::range) {
      std::int64_t number = -1;
      if (!is_step(mark_, range_name(range), number)) return;
      by_marks_ = true;
      steps_.cut(number, r.start_ns);
    }
  }

  View view_;
  StepMark mark_;
  Operations operations_;
  Repeats repeats_;
  StepIntervals steps_;
  Pages<Marked> marked_;  // found by this scan
  StepWindows windows_;
  StepRows rows_;
  Pages<Total> totals_;
  std::uint64_t limit_[kMaxThreads] = {};
  std::uint64_t began_ns_ = 0;
  std::uint64_t oldest_open_ns_ = 0;
  std::uint64_t lost_before_ = 0;
  std::uint64_t lost_at_mark_ = 0;
  std::uint64_t lost_until_ns_ = 0;  // steps that began earlier may lack calls
  bool by_marks_ = false;
  bool finds_ = false;
  bool seen_ = false;  // a range that marks a step was seen
};

}  // namespace tprof
