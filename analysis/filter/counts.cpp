// Counts the calls of a selection, as rows of ledgers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "filter/selection.h"
#include "text/text.h"

namespace tprof::filter {

using read::Process;

namespace {

LineKey key_of(const read::Row& row) {
  return {row.bucket, row.name, row.dtype, row.comm.value_or(-1), row.bytes_class};
}

// The thread stays open: lines and steps do not always tell it.
read::Row row_of(const CallKey& key, const read::Amounts& amounts) {
  return {{.bucket = key.bucket,
           .name = key.name,
           .dtype = key.dtype,
           .comm = key.comm < 0 ? std::nullopt : std::optional(key.comm),
           .device = key.device,
           .host_memory = key.host_memory,
           .bytes_class = key.bytes_class,
           .thread = ThreadKind::mixed},
          amounts};
}

// Sees all calls, whatever was asked for.
struct KeyOfCall {
  std::optional<CallKey> operator()(const read::Event& e) const {
    return CallKey{{e.bucket, e.name, e.dtype, e.comm.value_or(-1), tprof::bytes_class(e.bytes)},
                   e.device,
                   e.host_memory,
                   calls.call(rank, e)};
  }
  const Process& rank;
  const Calls& calls;
};

// How many calls there are, whatever became of them, and which of those that pass were timed.
struct Passing {
  void call(const read::Event& e) {
    ++in_lines;
    const bool passes = calls.call(rank, e);
    left_out += passes ? 0 : 1;
    if (keeps_begun && passes && e.executed()) timed.call(e);
  }
  void device_time(const read::DeviceTime& t) { timed.time(t); }
  void end() { timed.finish(); }

  const Process& rank;
  const Calls& calls;
  bool keeps_begun;
  std::uint64_t in_lines = 0;
  std::uint64_t left_out = 0;
  std::set<Calls::Begun> begun{};
  stats::TimedCalls timed{[this](const read::Event& e, const read::DeviceTime* t) {
    if (t != nullptr) begun.emplace(e.ts_ns, e.thread);
  }};
};

// Takes all that is counted from the lines of a rank.
struct OfLines {
  auto parts() { return std::tie(passing, groups); }

  Passing passing;
  stats::RankGroups<read::Amounts, KeyOfCall> groups;
};

}  // namespace

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

// Says of copies that get no lines that they are left out: they are in no step line either.
Counted Selection::counted_in_steps(const Process& rank) {
  Counted sums;
  if (const auto intervals = found_->ranks.find(&rank); intervals != found_->ranks.end()) {
    const std::vector<read::StepLine>& lines = found_->lines.at(&rank);
    for (std::size_t k = 0; k < lines.size(); ++k) {
      if (!filter_.steps->holds(intervals->second[k].step)) continue;
      untold_.launches += lines[k].launches;
      for (const read::Row& row : lines[k].rows) {
        sums[{key_of(row), row.device, row.host_memory}] += row.amounts;
      }
    }
  }
  for (const read::Row& row : read::rows_of(rank)) {
    const bool copies = !kBuckets[static_cast<std::size_t>(row.bucket)].lines;
    if (!copies || read::wants_lines(rank, row.bucket)) continue;
    if (row.mode == Mode::direct && calls_.row(rank, row) != Holds::no) {
      untold_.calls[row.bucket] += row.amounts.calls;
    }
  }
  return sums;
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
read::Rows Selection::filtered(const Process& rank, const Counted& lines, bool by_row) {
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
  std::map<LineKey, std::uint64_t> told;
  for (const auto& [key, amounts] : lines) {
    told[key] += amounts.calls;
    if (key.passes && (!by_row || open.contains(key))) rows.push_back(row_of(key, amounts));
  }
  for (const auto& [key, of_key] : open) {
    const std::uint64_t all = of_key.calls + of_key.others;
    const std::uint64_t without = std::min(of_key.calls, all - std::min(all, told[key]));
    if (without != 0) untold_.calls[key.bucket] += without;
  }
  return rows;
}

void Selection::count(const Needs& needs) {
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
  run::ByRank<OfLines> lines;
  if (counts_lines || keeps_begun || needs.left_out) {
    lines = lines_.of(job_).each([&](const Process& p) {
      return OfLines{{p, calls_, keeps_begun}, {p, {p, calls_}, lines_.has_device_times(p)}};
    });
  }
  for (const Process* p : job_.processes) {
    if (const Passing* of_lines = lines.of<Passing>(p)) {
      lines_of_[p] = {of_lines->in_lines, of_lines->left_out};
      if (keeps_begun) begun_[p] = of_lines->begun;
    }
    if (!needs.counts) continue;
    read::Rows& rows = rows_[p];
    if (by_steps) {
      for (const auto& [key, amounts] : counted_in_steps(*p)) rows.push_back(row_of(key, amounts));
    } else {
      const auto* groups = lines.of<decltype(OfLines::groups)>(p);
      rows = filtered(*p, groups == nullptr ? Counted() : groups->found, !moments);
    }
    rows.shrink_to_fit();
  }
  if (keeps_begun) calls_.begun = &begun_;
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
