// Puts the counts of the chosen calls into the ledgers of a selection.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "filter/selection.h"
#include "text/text.h"

namespace tprof::filter {

using read::Process;

// Leaves in what the writers counted in the steps only what passes. Returns false if that takes
// lines.
bool Selection::filter_step_lines() {
  if (!found_ || !found_->exact) return false;
  auto lines = found_->lines;
  bool told = filter_.phases.empty();
  for (auto& [rank, of_rank] : lines) {
    for (read::StepLine& line : of_rank) {
      read::Rows kept;
      for (const read::Row& row : line.rows) {
        const Holds holds = calls_.row(*rank, row);
        told = told && holds != Holds::some;
        if (holds != Holds::no) kept.push_back(row);
      }
      line.rows = std::move(kept);
    }
  }
  // From here on all that is said of steps comes from lines, as what the writers counted would not
  // be of these calls.
  found_->exact = told;
  if (told) found_->lines = std::move(lines);
  return told;
}

read::Rows Selection::rows_of_steps(const Process& rank) const {
  read::Rows rows;
  const auto intervals = found_->ranks.find(&rank);
  if (intervals == found_->ranks.end()) return rows;
  const std::vector<read::StepLine>& lines = found_->lines.at(&rank);
  std::vector<std::pair<read::RowKey, read::Amounts>> sums;
  for (std::size_t k = 0; k < lines.size(); ++k) {
    if (!filter_.steps->holds(intervals->second[k].step)) continue;
    for (const read::Row& row : lines[k].rows) {
      const auto same = std::ranges::find_if(
          sums, [&](const auto& s) { return s.first == static_cast<const read::RowKey&>(row); });
      if (same != sums.end()) {
        same->second += row.amounts;
      } else {
        sums.emplace_back(row, row.amounts);
      }
    }
  }
  for (const auto& [key, amounts] : sums) {
    read::Row row;
    static_cast<read::RowKey&>(row) = key;
    row.amounts = amounts;
    rows.push_back(row);
  }
  return rows;
}

// The phase of all calls of a row that get no lines: that of autograd's threads is backward, and
// nothing tells more of other threads' calls. Nullopt: it takes their lines.
std::optional<stats::StepPhase> Selection::phase_of(const Process& rank,
                                                    const read::Row& row) const {
  if (filter_.steps || filter_.phases.empty() || row.mode != Mode::direct) return std::nullopt;
  if (row.thread == ThreadKind::mixed || read::wants_lines(rank, row.bucket)) {
    return std::nullopt;
  }
  return row.thread == ThreadKind::autograd ? stats::StepPhase::backward : stats::StepPhase::other;
}

// Rows that are told by themselves, and in place of the others the sums of lines. A line does not
// say of which row it is where rows differ by device, memory or thread only: lines stand for all of
// them as soon as one of them takes lines.
read::Rows Selection::filtered(const Process& rank, const Counted* lines, bool by_row) {
  struct Open {
    std::uint64_t calls = 0;   // of rows that are told by lines
    std::uint64_t others = 0;  // of rows that have none that passes
  };
  std::map<LineKey, Open> open;
  for (const read::Row& row : read::rows_of(rank)) {
    if (row.mode != Mode::direct) continue;
    const Holds holds = calls_.row(rank, row);
    if (holds != Holds::no && (!by_row || holds == Holds::some) && !phase_of(rank, row)) {
      open[key_of(row)];
    }
  }
  read::Rows rows;
  for (const read::Row& row : read::rows_of(rank)) {
    const Holds holds = calls_.row(rank, row);
    const auto of_lines = row.mode == Mode::direct ? open.find(key_of(row)) : open.end();
    if (of_lines != open.end()) {
      (holds == Holds::no ? of_lines->second.others : of_lines->second.calls) += row.amounts.calls;
    } else if (holds == Holds::no) {
      continue;
    } else if (by_row && holds == Holds::yes) {
      rows.push_back(row);
    } else if (const auto phase = phase_of(rank, row); phase && holds == Holds::yes) {
      if (filter_.phases.contains(*phase)) rows.push_back(row);
      if (*phase == stats::StepPhase::other) untold_.other[row.bucket] += row.amounts.calls;
    } else if (row.mode == Mode::replayed) {
      untold_.calls[row.bucket] += row.amounts.calls;
    }
  }
  const auto is_open = [&](const LineKey& key) { return !by_row || open.contains(key); };
  if (lines != nullptr) add_rows(*lines, is_open, rows);
  for (const auto& [key, of_key] : open) {
    const std::uint64_t told = lines == nullptr ? 0 : lines->lines_of(key);
    const std::uint64_t all = of_key.calls + of_key.others;
    const std::uint64_t without = std::min(of_key.calls, all - std::min(all, told));
    if (without != 0) untold_.calls[key.bucket] += without;
  }
  return rows;
}

// Copies that get no lines are in no step line either.
void Selection::add_uncounted(const Process& rank) {
  for (const read::Row& row : read::rows_of(rank)) {
    const bool copies = !kBuckets[static_cast<std::size_t>(row.bucket)].lines;
    if (!copies || read::wants_lines(rank, row.bucket)) continue;
    if (row.mode == Mode::direct && calls_.row(rank, row) != Holds::no) {
      untold_.calls[row.bucket] += row.amounts.calls;
    }
  }
}

void Selection::count(read::Traces& traces, const Needs& needs) {
  const bool moments = filter_.steps || !filter_.phases.empty();
  const bool by_steps = filter_step_lines() && filter_.steps;
  const auto undecided = [&](const Process* p) {
    return std::ranges::any_of(read::rows_of(*p), [&](const read::Row& row) {
      return calls_.row(*p, row) == Holds::some;
    });
  };
  const bool counts_lines =
      needs.counts && !by_steps && (moments || std::ranges::any_of(job_.processes, undecided));
  const bool keeps_begun = needs.device_times && calls_.needs_begun();
  run::ByRank<Counted> lines;
  if (counts_lines || keeps_begun || needs.left_out) {
    const read::Chosen by_call{
        .call = [&](const Process& p, const read::Event& e) { return calls_.call(p, e); }};
    lines = lines_.of(job_, by_call).each([&](const Process&) { return Counted(keeps_begun); });
  }
  const std::set<const Process*> ours(job_.processes.begin(), job_.processes.end());
  for (read::Trace& trace : traces.traces) {
    for (Process& p : trace.processes) {
      if (!ours.contains(&p)) continue;
      const Counted* of_lines = lines.of(&p);
      if (of_lines != nullptr) lines_of_[&p] = {of_lines->in_lines, of_lines->left_out};
      if (of_lines != nullptr && keeps_begun) begun_[&p] = of_lines->begun;
      if (!needs.counts) continue;
      if (by_steps) add_uncounted(p);
      read::Rows rows = by_steps ? rows_of_steps(p) : filtered(p, of_lines, !moments);
      rows.shrink_to_fit();
      whole_[&p] = p.ledger;
      if (!p.ledger && rows.empty()) continue;
      if (!p.ledger) p.ledger.emplace();
      p.ledger->rows = std::move(rows);
    }
  }
  if (keeps_begun) calls_.begun = &begun_;
  if (by_steps) {
    for (const auto& [rank, of_rank] : found_->lines) {
      for (std::size_t k = 0; k < of_rank.size(); ++k) {
        if (filter_.steps->holds(found_->ranks.at(rank)[k].step)) {
          untold_.launches += of_rank[k].launches;
        }
      }
    }
  }
  say_untold();
}

void Selection::say_untold() {
  const char* what = filter_.steps ? "step" : !filter_.phases.empty() ? "phase" : "exact size";
  const auto say = [&](const std::map<Bucket, std::uint64_t>& calls, const std::string& where) {
    std::uint64_t all = 0;
    std::vector<std::string> names;
    for (const auto& [bucket, n] : calls) {
      if (n == 0) continue;
      all += n;
      names.push_back(fmt::format("{} {}", text::thousands(n), bucket_name(bucket)));
    }
    if (all == 0) return;
    notes_.push_back(fmt::format("{} without a line {} {}, as nothing tells {} {} ({})",
                                 all == 1 ? "1 call" : text::thousands(all) + " calls",
                                 all == 1 ? "is" : "are", where, all == 1 ? "its" : "their", what,
                                 fmt::join(names, ", ")));
  };
  say(untold_.calls, "left out");
  say(untold_.other, "taken for phase other");
  if (untold_.launches != 0) {
    notes_.push_back(fmt::format(
        "{} of CUDA graphs in these steps {} left out, as no step counts "
        "what they move",
        untold_.launches == 1 ? "1 launch" : text::thousands(untold_.launches) + " launches",
        untold_.launches == 1 ? "is" : "are"));
  }
}

}  // namespace tprof::filter
