// Collects what was called in each step, and writes its line: tprof_step. It is exact if no record
// was lost: a call belongs to the step in which it began.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "interpose/lines/ledger_lines.h"
#include "interpose/write/step_intervals.h"

namespace tprof {

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

  // Moves the rows of one step into `totals`. False: memory was short, and some are missing.
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

// `launches`: launches of graphs, whose calls are in no row. `lost`: calls may be missing. `found`:
// nobody marked the step.
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

}  // namespace tprof
