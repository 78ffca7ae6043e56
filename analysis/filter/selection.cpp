#include "filter/selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "interpose/format/setting_values.h"
#include "read/error.h"
#include "steps/rank_steps.h"
#include "tables/groups.h"
#include "text/text.h"

namespace tprof::filter {

using read::Process;
using tables::StepPhase;

namespace {

// Takes all calls, chosen or not.
struct KeyOfCall {
  std::optional<CallKey> operator()(const read::Event& e) const {
    return CallKey{{.bucket = e.bucket,
                    .name = e.name,
                    .dtype = e.dtype,
                    .comm = e.comm,
                    .device = e.device,
                    .host_memory = e.host_memory,
                    .bytes_class = tprof::bytes_class(e.bytes),
                    .thread = ThreadKind::mixed},
                   calls.call(rank, e)};
  }
  const Process& rank;
  const Calls& calls;
};

// Counts all calls, and notes which of the passing ones were timed.
struct Passing {
  void timed(const read::Event& e, const read::DeviceTime* t) {
    ++in_lines;
    const bool passes = calls.call(rank, e);
    left_out += passes ? 0 : 1;
    if (keeps_begun && passes && e.executed() && t != nullptr) begun.emplace(e.ts_ns, e.thread);
  }

  const Process& rank;
  const Calls& calls;
  bool keeps_begun;
  std::uint64_t in_lines = 0;
  std::uint64_t left_out = 0;
  std::set<Calls::Begun> begun{};
};

// Takes everything that is counted from a rank's lines.
struct OfLines {
  void timed(const read::Event& e, const read::DeviceTime* t) {
    passing.timed(e, t);
    groups.timed(e, t);
  }
  void end() { groups.end(); }

  Passing passing;
  tables::RankGroups<read::Amounts, KeyOfCall> groups;
};

// Rows that differ only in these can't be told apart by a line.
read::RowKey without_places(read::RowKey key) {
  key.device.reset();
  key.host_memory = HostMemory::unknown;
  key.mode = Mode::direct;
  key.thread = ThreadKind::mixed;
  return key;
}

}  // namespace

std::optional<std::string> absent_of(const std::string& asked, const job::Job& job) {
  if (asked.empty()) return std::nullopt;
  bool all = true;
  each_range(asked, [&](std::int64_t first, std::int64_t last) {
    const auto from = std::ranges::lower_bound(job.ranks, first);
    const auto to = std::ranges::upper_bound(job.ranks, last);
    all = all && to - from - 1 == last - first;
  });
  if (all) return std::nullopt;
  const bool one = job.ranks.size() == 1;
  return fmt::format("--ranks {}: only {} {} {} here", asked, one ? "rank" : "ranks",
                     text::Ranks(job.ranks).str(), one ? "is" : "are");
}

job::Job with_ranks(const job::Job& whole, const std::string& ranks, Comes how) {
  job::Job job = whole;
  if (ranks.empty()) return job;
  const auto key = [&](const Process* p) { return how == Comes::alone ? p : p - p->lane; };
  std::set<const Process*> listed;
  for (const Process* p : whole.processes) {
    if (p->header.rank && is_listed(ranks, *p->header.rank)) listed.insert(key(p));
  }
  if (listed.empty()) {
    throw read::BadInput(whole.ranks.empty()
                             ? "--ranks: no process here has a rank"
                             : fmt::format("--ranks: none of the ranks {} is here; there {} {}",
                                           ranks, whole.ranks.size() == 1 ? "is rank" : "are ranks",
                                           text::Ranks(whole.ranks).str()));
  }
  std::erase_if(job.processes, [&](const Process* p) { return !listed.contains(key(p)); });
  std::set<std::int64_t> left;
  for (const Process* p : job.processes) {
    if (p->header.rank) left.insert(*p->header.rank);
  }
  job.ranks.assign(left.begin(), left.end());
  job.missing.clear();
  job.part = true;
  return job;
}

Selection::Selection(const run::Lines& whole, const Filter& filter, const Needs& needs)
    : lines_(whole),
      filter_(filter),
      job_(with_ranks(whole.job(), filter.words.ranks, needs.ranks)),
      calls_(filter, whole.job()) {
  if (filter_.words.empty()) return;
  if (const auto few = absent_of(filter_.words.ranks, job_)) notes_.push_back(*few);
  if (moments() || needs.steps) find_steps();
  if (!filter_.phases.empty()) find_phases();
  if (filter_.words.of_calls()) count(needs);
}

// The same phases as in `summary --by phase`: backward for autograd's threads, and the other calls
// by ranges, threads and order.
void Selection::find_phases() {
  phases_ =
      lines_.of(job_).each([&](const Process& rank) { return tables::RankPhases(rank, *found_); });
  calls_.phases = &phases_;
  std::vector<const Process*> unordered;
  for (const Process* p : job_.processes) {
    const tables::RankPhases* rank = phases_.of(p);
    if (rank == nullptr) continue;
    if (!rank->ordered) unordered.push_back(p);
    if (rank->known && rank->all) continue;
    throw read::BadInput(p->file, rank->all ? "--phase: the lines do not tell which threads are "
                                              "autograd's, as thread names are missing"
                                            : "--phase: too many calls; give fewer --ranks");
  }
  if (unordered.empty()) return;
  notes_.push_back(
      fmt::format("{}: phases can't be told from the order of calls, as some calls have no line on "
                  "a named thread; those calls are in phase other",
                  steps::names(unordered)));
}

void Selection::find_steps() {
  found_ = steps::find(lines_);
  calls_.found = filter_.steps ? &*found_ : nullptr;
  const std::set<const Process*> ours(job_.processes.begin(), job_.processes.end());
  const auto other = [&](const auto& of_rank) { return !ours.contains(of_rank.first); };
  std::erase_if(found_->ranks, other);
  std::erase_if(found_->lines, other);
  if (!filter_.steps) return;
  if (found_->how == steps::How::none) {
    throw read::BadInput("--steps: no steps are known: " + found_->why);
  }
  const auto made = [&](const auto& of_rank) {
    return std::ranges::any_of(
        of_rank.second, [&](const steps::Interval& i) { return filter_.steps->holds(i.step); });
  };
  if (std::ranges::any_of(found_->ranks, made)) return;
  throw read::BadInput(fmt::format("--steps: there are no steps {}; there are {}",
                                   filter_.words.steps, text::Ranks(found_->steps).str()));
}

run::Lines Selection::lines() const {
  if (!filter_.words.of_calls()) return lines_.of(job_, {});
  read::Chosen chosen = {
      .call = [this](const Process& p, const read::Event& e) { return calls_.call(p, e); },
      .time = [this](const Process& p, const read::DeviceTime& t) { return calls_.time(p, t); }};
  if (!rows_.empty()) {
    chosen.rows = [this](const Process& p) -> const read::Rows& { return rows_.at(&p); };
  }
  return lines_.of(job_, std::move(chosen));
}

std::pair<std::uint64_t, std::uint64_t> Selection::lines_of(const Process& rank) const {
  const auto of_rank = lines_of_.find(&rank);
  return of_rank == lines_of_.end() ? std::pair<std::uint64_t, std::uint64_t>() : of_rank->second;
}

// Reduces the writers' counts of steps to what passes. Returns false if that needs lines.
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
  // From here on steps are those of lines, since the writers' counts include other calls.
  found_->exact = told;
  if (told) found_->lines = std::move(lines);
  return told;
}

Counted Selection::counted_in_steps(const Process& rank, const Counted& in_lines) {
  Counted sums;
  for (const auto& [key, amounts] : in_lines) {
    if (key.passes) sums[key] += amounts.on_device();
  }
  const auto intervals = found_->ranks.find(&rank);
  if (intervals == found_->ranks.end()) return sums;
  const std::vector<read::StepLine>& lines = found_->lines.at(&rank);
  for (std::size_t k = 0; k < lines.size(); ++k) {
    if (!filter_.steps->holds(intervals->second[k].step)) continue;
    launches_ += lines[k].launches;
    for (const read::Row& row : lines[k].rows) {
      CallKey key{row};
      key.mode = Mode::direct;
      key.thread = ThreadKind::mixed;
      sums[key] += row.amounts;
    }
  }
  return sums;
}

// Returns the phase of a row whose calls get no lines: backward for autograd's threads, other for
// others. Nullopt: their lines decide.
std::optional<StepPhase> Selection::phase_of(const Process& rank, const read::Row& row) const {
  const bool lines = row.thread == ThreadKind::mixed || read::wants_lines(rank, row.bucket);
  if (filter_.steps || filter_.phases.empty() || row.mode != Mode::direct || lines) {
    return std::nullopt;
  }
  return row.thread == ThreadKind::autograd ? StepPhase::backward : StepPhase::other;
}

Holds Selection::holds(const Process& rank, const read::Row& row) const {
  const Holds of_call = calls_.row(rank, row);
  if (of_call == Holds::no || !moments()) return of_call;
  const auto phase = phase_of(rank, row);
  if (of_call == Holds::some || !phase) return Holds::some;
  return filter_.phases.contains(*phase) ? Holds::yes : Holds::no;
}

// Returns the rows that pass as a whole, and counts from lines or steps in place of the others. If
// one of several rows that lines can't tell apart needs lines, all of them do.
read::Rows Selection::filtered(const Process& rank, const Counted& counted, bool by_steps) {
  struct Open {
    std::uint64_t calls = 0;   // of rows that need lines
    std::uint64_t others = 0;  // of rows without a passing call
    std::uint64_t told = 0;
  };
  std::map<read::RowKey, Open> open;
  for (const read::Row& row : read::rows_of(rank)) {
    if (row.mode == Mode::direct && holds(rank, row) == Holds::some) open[without_places(row)];
  }
  read::Rows rows;
  for (const read::Row& row : read::rows_of(rank)) {
    const Holds passes = holds(rank, row);
    const std::uint64_t calls = row.amounts.calls;
    const auto of_lines = row.mode == Mode::direct ? open.find(without_places(row)) : open.end();
    if (of_lines != open.end()) {
      (passes == Holds::no ? of_lines->second.others : of_lines->second.calls) += calls;
      continue;
    }
    if (passes == Holds::yes) rows.push_back(row);
    const bool replayed = row.mode == Mode::replayed && !by_steps;
    if (passes == Holds::some && replayed) without_line_[row.bucket] += calls;
    const bool other = phase_of(rank, row) == StepPhase::other;
    if (other && calls_.row(rank, row) == Holds::yes) other_[row.bucket] += calls;
  }
  for (const auto& [key, amounts] : counted) {
    const auto of_rows = open.find(without_places(key));
    if (of_rows != open.end()) of_rows->second.told += amounts.calls;
    if (key.passes && (moments() || of_rows != open.end())) rows.push_back({key, amounts});
  }
  for (const auto& [key, of] : open) {
    // Steps have all calls except copies that get no lines.
    const bool counts = !kBuckets[static_cast<std::size_t>(key.bucket)].lines &&
                        !read::wants_lines(rank, key.bucket);
    const std::uint64_t all = of.calls + of.others;
    const std::uint64_t without = std::min(of.calls, all - std::min(all, of.told));
    if (without != 0 && (!by_steps || counts)) without_line_[key.bucket] += without;
  }
  rows.shrink_to_fit();
  return rows;
}

void Selection::count(const Needs& needs) {
  const bool by_steps = filter_step_lines() && filter_.steps;
  const auto undecided = [&](const Process* p) {
    return std::ranges::any_of(read::rows_of(*p),
                               [&](const read::Row& row) { return holds(*p, row) == Holds::some; });
  };
  const auto timed = [&](const Process* p) { return lines_.has_device_times(*p); };
  const bool counts_lines =
      needs.counts && (by_steps    ? std::ranges::any_of(job_.processes, timed)
                       : moments() ? true
                                   : std::ranges::any_of(job_.processes, undecided));
  const bool keeps_begun = needs.device_times && calls_.needs_begun();
  run::ByRank<OfLines> lines;
  if (counts_lines || keeps_begun || needs.left_out) {
    lines = lines_.of(job_).each([&](const Process& p) {
      return OfLines{{p, calls_, keeps_begun}, {p, {p, calls_}}};
    });
  }
  for (const Process* p : job_.processes) {
    OfLines* of_lines = lines.of(p);
    if (of_lines != nullptr) {
      Passing& passing = of_lines->passing;
      lines_of_[p] = {passing.in_lines, passing.left_out};
      if (keeps_begun) calls_.begun[p] = std::move(passing.begun);
    }
    if (!needs.counts) continue;
    const Counted in_lines = of_lines == nullptr ? Counted() : of_lines->groups.found;
    rows_[p] = filtered(*p, by_steps ? counted_in_steps(*p, in_lines) : in_lines, by_steps);
  }
  if (needs.any && none_pass()) {
    throw read::BadInput("no call passes the filters: " + filter_.words.sentence());
  }
  say(without_line_, "left out");
  say(other_, "counted as phase other");
  if (launches_ == 0) return;
  notes_.push_back(fmt::format(
      "{} of CUDA graphs in these steps {} left out, as steps don't count what they move",
      launches_ == 1 ? "1 launch" : text::thousands(launches_) + " launches",
      launches_ == 1 ? "is" : "are"));
}

// False if there is no call, or if it is unknown whether some pass.
bool Selection::none_pass() const {
  const auto has_calls = [](const read::Rows& rows) {
    return std::ranges::any_of(rows, [](const read::Row& row) { return row.amounts.calls != 0; });
  };
  const auto counted = [&](const Process* p) { return has_calls(read::rows_of(*p)); };
  const auto passed = [&](const Process* p) {
    const auto [in_lines, left_out] = lines_of(*p);
    return rows_.empty() ? in_lines == 0 || in_lines != left_out : has_calls(rows_.at(p));
  };
  return launches_ == 0 && without_line_.empty() && !(rows_.empty() && lines_of_.empty()) &&
         std::ranges::any_of(job_.processes, counted) &&
         std::ranges::none_of(job_.processes, passed);
}

void Selection::say(const CallsOfBuckets& calls, std::string_view where) {
  const char* what = filter_.steps ? "step" : !filter_.phases.empty() ? "phase" : "exact size";
  std::uint64_t all = 0;
  std::vector<std::string> names;
  for (const auto& [bucket, n] : calls) {
    if (n == 0) continue;
    all += n;
    names.push_back(fmt::format("{} {}", text::thousands(n), bucket_name(bucket)));
  }
  if (all == 0) return;
  const bool one = all == 1;
  notes_.push_back(fmt::format("{} call{} without a line {} {}, as {} {} is unknown ({})",
                               text::thousands(all), one ? "" : "s", one ? "is" : "are", where,
                               one ? "its" : "their", what, fmt::join(names, ", ")));
}

}  // namespace tprof::filter
