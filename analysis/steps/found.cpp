#include "steps/found.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "interpose/format/line_kinds.h"
#include "read/error.h"
#include "steps/marks.h"
#include "steps/rank_steps.h"
#include "steps/shared.h"
#include "text/text.h"

namespace tprof::steps {

namespace {

using read::Process;

using LinesOfRanks = std::map<const Process*, std::vector<read::StepLine>>;

// Keeps the calls of a rank until its last line, then only its steps.
struct Calls {
  explicit Calls(const Process& rank) : rank_(rank) {}
  void call(const read::Event& e) {
    reading_->sequence.add(e);
    reading_->end_ns = std::max(reading_->end_ns, e.ts_ns + e.dur_ns + 1);
  }
  void range(const read::Range& r) { reading_->marks.add(r); }
  void metadata(const read::Line& line) {
    if (is_line(line.text, LineKind::step)) {
      lines.push_back(read::parsed_line<read::StepLine>(line, rank_.file));
    }
  }
  void end() {
    lines.shrink_to_fit();
    const auto read = std::exchange(reading_, nullptr);
    Sequence& sequence = read->sequence;
    any = !sequence.operations.empty();
    whole = sequence.whole;
    marked = read->marks.steps();
    sequence.sort();
    steps = steps_of(rank_, sequence, read->end_ns);
  }

  std::vector<read::StepLine> lines;
  bool any = false;    // there were calls
  bool whole = false;  // all of them were read
  std::vector<Interval> marked;
  RankSteps steps;

 private:
  struct Reading {
    Sequence sequence{};
    Marks marks{};
    std::int64_t end_ns = 0;
  };
  const Process& rank_;
  std::unique_ptr<Reading> reading_ = std::make_unique<Reading>();  // until the rank's last line
};

// Gives each marked step a number of its own, and names the ranks that have fewer.
void number_marks(Found& found) {
  found.counted_on = count_on(found.ranks);
  std::set<std::int64_t> numbers;
  for (const auto& [rank, intervals] : found.ranks) {
    for (const Interval& i : intervals) numbers.insert(i.step);
  }
  found.steps.assign(numbers.begin(), numbers.end());
  std::vector<const Process*> fewer;
  for (const auto& [rank, intervals] : found.ranks) {
    if (intervals.size() != found.steps.size()) fewer.push_back(rank);
  }
  if (!fewer.empty()) {
    found.unknown.push_back(names(fewer) + (found.how == How::mark
                                                ? " did not end all of these steps"
                                                : " saw fewer of these steps"));
  }
  if (found.how == How::period) {
    found.unknown.push_back(
        "each begins after the previous step's last gradient reduction: what the program does "
        "before its next batch, such as reading the loss, is in the next step");
  }
  if (found.how == How::period && !found.steps.empty() && found.steps.front() > 1) {
    found.unknown.push_back(
        fmt::format("steps before step {} have no figures: the repetition was not recognised yet",
                    found.steps.front()));
  }
}

// Returns the marked steps if every rank has marks.
std::optional<Found> marked(const std::vector<std::pair<const Process*, const Calls*>>& ranks) {
  Found found{.how = How::mark, .whole_steps = true};
  for (const auto& [rank, calls] : ranks) {
    if (calls->marked.empty()) return std::nullopt;
    found.ranks[rank] = calls->marked;
  }
  number_marks(found);
  return found;
}

// Returns the steps of the tprof_step lines if every rank has some.
std::optional<Found> written(const std::vector<std::pair<const Process*, const Calls*>>& ranks,
                             LinesOfRanks& of_ranks) {
  for (const auto& [rank, calls] : ranks) {
    if (!of_ranks.contains(rank)) return std::nullopt;
  }
  Found found{.how = How::mark, .whole_steps = true, .exact = true};
  std::vector<const Process*> lost;
  std::vector<const Process*> without_line;
  std::uint64_t dropped = 0;
  std::uint64_t launches = 0;
  for (const auto& [rank, calls] : ranks) {
    bool whole = true;
    std::vector<read::StepLine>& lines = found.lines[rank] = std::move(of_ranks.at(rank));
    std::ranges::stable_sort(lines, {}, &read::StepLine::from_ns);
    // Marked steps take precedence over steps that the writer had found before the first mark.
    const bool marked = !std::ranges::all_of(lines, &read::StepLine::found);
    if (marked) std::erase_if(lines, [](const read::StepLine& line) { return line.found; });
    for (const read::StepLine& line : lines) {
      found.ranks[rank].push_back({line.step, line.from_ns, line.to_ns});
      whole = whole && !line.lost;
      if (line.found) found.how = How::period;
      found.whole_steps = found.whole_steps && !line.found;
      launches += line.launches;
    }
    if (!whole) lost.push_back(rank);
    if (!rank->footer || rank->footer->steps_dropped == 0) continue;
    without_line.push_back(rank);
    dropped += rank->footer->steps_dropped;
  }
  number_marks(found);
  if (!lost.empty()) found.unknown.push_back(names(lost) + ": calls of some steps may be missing");
  if (dropped != 0) {
    found.unknown.push_back(fmt::format("{}: {} {} ended without a line", names(without_line),
                                        text::thousands(dropped), dropped == 1 ? "step" : "steps"));
  }
  if (launches != 0) found.unknown.push_back("calls that CUDA graphs replayed are in no step");
  return found;
}

// True if a rank's writer saw other steps while the program ran than its lines show.
bool disagree(const Found& found, const Found& exact) {
  for (const auto& [rank, of_rank] : exact.ranks) {
    const auto& lines = of_rank;  // clang 14 can't capture a structured binding
    const auto intervals = found.ranks.find(rank);
    if (intervals == found.ranks.end()) return true;
    const auto between = std::ranges::count_if(intervals->second, [&](const Interval& i) {
      return i.from_ns >= lines.front().from_ns && i.from_ns < lines.back().to_ns;
    });
    if (static_cast<std::size_t>(between) != lines.size()) return true;
  }
  return false;
}

void tell_none(const RanksByWhy& none, Found& found) {
  for (const auto& [why, which] : none) {
    found.unknown.push_back(names(which) + ": no steps were found: " + why);
    found.without += (found.without.empty() ? "" : "; ") + found.unknown.back();
  }
}

bool has_schedule(const Process* p) {
  return p->header.config.get("TPROF_SCHEDULE", "off") != "off";
}

}  // namespace

const Interval* interval_at(std::span<const Interval> ascending, std::int64_t ts_ns) {
  const auto next = std::ranges::upper_bound(ascending, ts_ns, {}, &Interval::from_ns);
  if (next == ascending.begin() || ts_ns >= std::prev(next)->to_ns) return nullptr;
  return &*std::prev(next);
}

const Interval* interval_of(const Found& found, const Process* rank, std::int64_t ts_ns) {
  const auto intervals = found.ranks.find(rank);
  return intervals == found.ranks.end() ? nullptr : interval_at(intervals->second, ts_ns);
}

std::optional<std::int64_t> step_at(const Found& found, const Process* rank, std::int64_t ts_ns) {
  const Interval* interval = interval_of(found, rank, ts_ns);
  return interval == nullptr ? std::nullopt : std::optional(interval->step);
}

Found find(const run::Lines& all) {
  const job::Job& job = all.job();
  LinesOfRanks of_ranks;
  const run::ByRank<Calls> lines = all.each<Calls>();
  std::vector<std::pair<const Process*, const Calls*>> calling;
  std::vector<const Process*> cut;
  std::vector<const Process*> long_ones;
  for (const Process* p : job.processes) {
    Calls* calls = lines.of(p);
    if (calls == nullptr) continue;
    if (!calls->lines.empty()) of_ranks[p] = std::move(calls->lines);
    const bool calls_others = !p->comms.empty() && calls->any;
    if (!calls_others && !of_ranks.contains(p) && calls->marked.empty()) continue;
    calling.emplace_back(p, calls);
    if (!lines_are_whole(*p)) cut.push_back(p);
    if (!calls->whole) long_ones.push_back(p);
  }
  if (calling.empty() && std::ranges::any_of(job.processes, has_schedule)) {
    return {.why =
                "no window of TPROF_SCHEDULE opened: it counts steps, but the program marks none, "
                "and none were found while it ran"};
  }
  if (calling.empty()) {
    return {.why =
                "no rank has event lines of collectives, or steps that were marked or found while "
                "it ran"};
  }
  // The lines of the whole run show steps better than the writer could see them during the run.
  std::optional<Found> exact = written(calling, of_ranks);
  const bool all_seen = cut.empty() && long_ones.empty();
  if (exact && (exact->how == How::mark || !all_seen)) return std::move(*exact);
  std::optional<Found> found = marked(calling);
  if (!found) {
    std::vector<RankSteps> ranks;
    for (const auto& [rank, calls] : calling) ranks.push_back(calls->steps);
    RanksByWhy none;
    found = one_answer(std::move(ranks), none);
    if (found->how == How::period) tell_none(share_steps(all, none, *found), *found);
  }
  if (exact && disagree(*found, *exact)) return std::move(*exact);
  if (!cut.empty()) {
    found->unknown.push_back(
        names(cut) +
        ": some calls have no line, so steps and their counts are from those that have one");
  }
  if (!long_ones.empty()) {
    found->unknown.push_back(
        fmt::format("{}: only the first {} calls are searched for steps, except for marked steps",
                    names(long_ones), text::thousands(Sequence::kMost)));
  }
  return std::move(*found);
}

namespace {

constexpr double kAbout = 0.9;

// Returns the mean without the first step, in which frameworks set up, and the longest.
double usual_ns(const std::vector<Interval>& intervals) {
  std::vector<double> all;
  for (const Interval& i : intervals) {
    if (i.end_known && i.to_ns >= i.from_ns) {
      all.push_back(static_cast<double>(i.to_ns) - static_cast<double>(i.from_ns));
    }
  }
  if (all.size() > 2) all.erase(all.begin());
  if (all.size() > 2) all.erase(std::ranges::max_element(all));
  double sum = 0;
  for (const double ns : all) sum += ns;
  return all.empty() ? 0 : sum / static_cast<double>(all.size());
}

}  // namespace

std::set<const read::Process*> in_pace(const Found& found) {
  std::map<const read::Process*, double> usual;
  double longest = 0;
  for (const auto& [rank, intervals] : found.ranks) {
    longest = std::max(longest, usual[rank] = usual_ns(intervals));
  }
  std::set<const read::Process*> all;
  for (const auto& [rank, ns] : usual) {
    if (ns >= kAbout * longest) all.insert(rank);
  }
  return all;
}

bool may_run_ahead(const Found& found) {
  return std::ranges::any_of(found.ranks, [](const auto& rank) {
    std::uint64_t reads = 0;
    for (const read::Row& row : read::rows_of(*rank.first)) {
      if (row.bucket == Bucket::D2H && row.mode == Mode::direct) reads += row.amounts.calls;
    }
    return reads < rank.second.size();
  });
}

}  // namespace tprof::steps
