// Finds steps in the running program, by marks or repeats, and writes a line for each. It sees what
// the writer's thread drains, and costs the hot path nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "interpose/format/step_mark.h"
#include "interpose/write/ledger_lines.h"
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
  const std::uint64_t* begin(const Progress& p, const std::uint64_t* last);

  // Takes a closed record that counts.
  void record(const Record& r, const ThreadArea& t);

  // Call this after draining. Writes lines for the steps that can't get further calls, within their
  // part of the quota.
  void end(Text& out, Progress& p);

 private:
  void find_marks(const Progress& p, bool last);

  // Returns how many calls and ranges have no record because their ring was full.
  std::uint64_t records_lost() const;

  struct Marked {
    std::int64_t number;
    std::uint64_t from_ns, to_ns;
  };

  void add_range(const OpenRange& r, std::uint64_t to_ns);

  // Open ranges were scanned before closed ones, and threads one after the other, so this sorts the
  // marks by time first.
  void add_marked();

  // Finds unmarked steps. Only visited records are drained, but an open call delays this by at most
  // kStands.
  void find(const Progress& p, bool last);

  // Returns the first record not scanned. It may be closed before the drain gets there.
  std::uint64_t scan(const ThreadArea& t, std::uint64_t from);

  void end_of_call(const Record& r);

  void closed_range(const Record& first, const RingNow& ring, std::uint64_t n);

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
