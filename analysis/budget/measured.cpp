#include "budget/measured.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <ranges>
#include <span>
#include <utility>

#include "check/names.h"
#include "read/error.h"
#include "stats/totals.h"
#include "text/text.h"

namespace tprof::budget {
namespace {

using read::Process;

constexpr std::size_t kMostNames = 4;

Key key_of(const stats::OpKey& op) {
  return {op.bucket, op.name, op.dtype, op.nranks, op.bytes_class};
}

Moved moved(const read::Amounts& a) {
  return {static_cast<double>(a.calls), static_cast<double>(a.bytes),
          static_cast<double>(a.elements)};
}

// Where steps are made of several, what follows the last one may be missing of it: all-gathers of
// an optimizer.
std::size_t whole_steps(std::size_t found, std::size_t in_step) {
  const std::size_t steps = found / in_step;
  return in_step > 1 && found % in_step == 0 && steps > 1 ? steps - 1 : steps;
}

struct Lines {
  Lines(const Process& rank, const std::vector<steps::Interval>& all, std::size_t of_step,
        bool with_copies)
      : rank_(rank),
        intervals(all),
        in_step(of_step),
        copies(with_copies),
        steps(whole_steps(all.size(), of_step)) {}

  void call(const read::Event& e) {
    if (e.unfinished || e.failed || e.captured) return;
    const steps::Interval* at = steps::interval_at(intervals, e.ts_ns);
    if (at == nullptr) return;
    const auto step = static_cast<std::size_t>(at - intervals.data()) / in_step;
    if (copies || !is_copy(e.bucket)) {
      steps.add(step, key_of(stats::op_of(e, rank_)), read::amounts_of(e));
    }
  }
  void end() {
    found = steps.usual();
    steps = RankSteps(0);
  }

  const Process& rank_;
  const std::vector<steps::Interval>& intervals;
  std::size_t in_step;
  bool copies;
  RankSteps steps;
  Usual found;
};

// Those that a step makes more than the usual one.
double more_calls(const Figures& figures) {
  double calls = 0;
  for (const auto& [key, moved] : figures) calls += std::max(0.0, moved.calls);
  return calls;
}

// Ranks by what they moved, and the most that they moved often.
using Alike = std::map<Figures, std::pair<diagnose::Processes, Figures>>;

void add(Alike& to, const Process& rank, const Figures& figures, const Figures& often) {
  auto& [ranks, most] = to[figures];
  ranks.push_back(&rank);
  for (const auto& [key, moved] : often) most[key] = std::max(most[key], moved);
}

std::vector<Group> groups_of(const Alike& alike) {
  std::vector<Group> all;
  for (const auto& [figures, of] : alike) all.push_back({Members(of.first), figures, of.second});
  std::ranges::stable_sort(all, [](const Group& a, const Group& b) {
    const auto of_a = a.ranks.size();
    const auto of_b = b.ranks.size();
    return of_a == of_b ? a.ranks < b.ranks : of_a > of_b;
  });
  return all;
}

// Copies of a few steps, of the rank that makes most of them.
struct Seldom {
  double bytes = 0;  // of the step with most
  std::vector<std::int64_t> steps{};
  diagnose::Processes ranks{};  // that make the same
  bool others = false;          // make something else
};

void add_seldom(Seldom& to, const Process& rank, double bytes, std::vector<std::int64_t> steps) {
  if (bytes == to.bytes && steps == to.steps) return to.ranks.push_back(&rank);
  const bool first = to.ranks.empty();
  if (bytes > to.bytes || first) to = {bytes, std::move(steps), {&rank}, false};
  to.others = !first;
}

std::string text_of(Bucket bucket, const Seldom& s) {
  return fmt::format("{} is in no figure, as only a few steps have any: {}on {}, in {}, {}{}",
                     bucket_name(bucket), s.others ? "most " : "", diagnose::names_of(s.ranks),
                     steps_text(s.steps), s.steps.size() > 1 ? "up to " : "",
                     text::bytes(static_cast<std::uint64_t>(s.bytes)));
}

// Tells of the steps that are left out. `others`: they have other collectives than most.
void say_left_out(Measured& m, bool others) {
  if (m.left_out == 0) return;
  const std::string steps = m.left_out == 1 ? "step" : text::thousands(m.left_out) + " steps";
  if (!others) {
    m.notes.push_back(fmt::format(
        "the figures leave out the first {}, with collectives that no later one makes (setup)",
        steps));
    return;
  }
  m.notes.push_back(fmt::format(
      "the figures leave out {}{}, with other collectives than most (setup, evaluation, "
      "checkpoint?)",
      m.left_out == 1 ? "1 " : "", steps));
  std::map<std::int64_t, Figures> all = m.setup;
  all.insert(m.other_steps.begin(), m.other_steps.end());
  const std::string text = differences_text(all);
  if (!text.empty()) m.notes.push_back("against the others, " + text);
}

Measured of_ledgers(const job::Job& job, std::uint64_t steps, bool copies) {
  Measured m{.from = Measured::From::ledger, .steps = steps};
  Alike alike;
  for (const Process* p : job.processes) {
    if (p->comms.empty()) continue;  // a child, or it made no collective
    Figures figures;
    stats::each_row(*p, [&](const read::Row& row) {
      if (!copies && is_copy(row.bucket)) return;
      figures[key_of(stats::op_of(row, *p))] += moved(row.amounts);
    });
    const auto n = static_cast<double>(steps);
    for (auto& [key, sum] : figures) sum = sum / n;
    add(alike, *p, figures, figures);
  }
  m.groups = groups_of(alike);
  if (m.groups.empty()) {
    throw read::BadInput(
        "no rank has a communicator: no collective was seen of which a budget can be (tprof doctor "
        "PATH says what goes past)");
  }
  m.notes.push_back(fmt::format(
      "the figures are those of the whole run divided by {} steps, so setup, evaluations and "
      "checkpoints are in them",
      text::thousands(steps)));
  return m;
}

}  // namespace

Members::Members(const diagnose::Processes& all) : numbers(diagnose::ranks_of(all)) {
  for (const read::Process* p : all) {
    if (!p->header.rank) others.push_back(diagnose::name_of(*p));
  }
  std::ranges::sort(others);
}

void Members::add(const Members& more) {
  numbers.add(more.numbers);
  const auto here = static_cast<std::ptrdiff_t>(others.size());
  others.insert(others.end(), more.others.begin(), more.others.end());
  std::ranges::inplace_merge(others, others.begin() + here);
}

std::string Members::list() const {
  std::string all = numbers.str();
  if (others.empty()) return all;
  if (!all.empty()) all += ", ";
  const std::size_t named = std::min(others.size(), kMostNames);
  all += fmt::format("{}", fmt::join(std::span(others).first(named), ", "));
  if (named == others.size()) return all;
  return all + fmt::format(" and {} more processes", text::thousands(others.size() - named));
}

std::string Members::names() const {
  if (numbers.empty()) return list();
  return (numbers.size() == 1 ? "rank " : "ranks ") + list();
}

std::size_t found_in_step(const steps::Found& found, const Asked& asked) {
  const std::size_t n = found.steps.size();
  if (asked.steps != 0) return n >= asked.steps && n % asked.steps == 0 ? n / asked.steps : 0;
  return found.whole_steps ? 1 : asked.micro_batches;
}

Measured measure(const run::Lines& all_lines, const Asked& asked) {
  const job::Job& job = all_lines.job();
  const steps::Found found = steps::find(all_lines);
  const bool known = found.how != steps::How::none;
  const std::int64_t nranks = job.world_size.value_or(static_cast<std::int64_t>(job.ranks.size()));
  const std::size_t in_step = known ? found_in_step(found, asked) : 0;
  if (!known && asked.steps == 0) {
    throw read::BadInput("no steps are known: " + found.why +
                         "; --steps N says how many the job made");
  }
  if (in_step == 0) {
    Measured m = of_ledgers(job, asked.steps, asked.copies);
    m.unreadable = all_lines.unreadable();
    m.nranks = nranks;
    if (known) {
      m.notes.push_back(fmt::format("{} steps or micro-batches were found, which do not make {}",
                                    text::thousands(found.steps.size()),
                                    text::thousands(asked.steps)));
    }
    return m;
  }

  Measured m{.from = found.exact ? Measured::From::step_lines : Measured::From::lines,
             .found = found.steps.size(),
             .may_be_steps = in_step > 1 && !found.whole_steps && asked.steps == 0,
             .may_be_micro_batches =
                 in_step == 1 && !found.whole_steps && asked.steps == 0 && !asked.each_is_step,
             .nranks = nranks};
  Alike alike;
  std::map<Bucket, Seldom> seldom;
  bool others_left_out = false;
  const auto take = [&](const Process& rank, const Usual& of, const auto& steps_of_rank) {
    if (of.steps == 0) return;
    add(alike, rank, of.figures, of.often);
    const auto number = [&](std::size_t i) {
      return in_step == 1 ? steps_of_rank[i].step : static_cast<std::int64_t>(i) + 1;
    };
    if (of.left_out > m.left_out) others_left_out = of.usual;
    m.left_out = std::max(m.left_out, of.left_out);
    for (const auto& [i, figures] : of.others) {
      auto& to = i < of.setup ? m.setup : m.other_steps;
      const auto [most, fresh] = to.try_emplace(number(i), figures);
      if (!fresh && more_calls(figures) > more_calls(most->second)) most->second = figures;
    }
    for (const auto& [bucket, bytes] : of.seldom) {
      std::vector<std::int64_t> steps;
      for (const auto& [i, n] : bytes) steps.push_back(number(i));
      const double most = std::ranges::max(bytes | std::views::values);
      add_seldom(seldom[bucket], rank, most, std::move(steps));
    }
    if (of.steps > m.steps) m.usual = of.usual;
    m.steps = std::max(m.steps, of.steps);
  };
  if (found.exact) {
    for (const auto& [rank, lines] : found.lines) {
      RankSteps steps(whole_steps(lines.size(), in_step));
      for (std::size_t i = 0; i < lines.size(); ++i) {
        for (const read::Row& row : lines[i].rows) {
          if (!asked.copies && is_copy(row.bucket)) continue;
          steps.add(i / in_step, key_of(stats::op_of(row, *rank)), row.amounts);
        }
      }
      take(*rank, steps.usual(), lines);
    }
  } else {
    all_lines.each(
        [&](const Process& rank) {
          const auto intervals = found.ranks.find(&rank);
          return intervals == found.ranks.end()
                     ? std::nullopt
                     : std::optional<Lines>(std::in_place, rank, intervals->second, in_step,
                                            asked.copies);
        },
        [&](const Lines& of) { take(of.rank_, of.found, of.intervals); });
  }
  m.unreadable = all_lines.unreadable();
  m.groups = groups_of(alike);
  if (m.groups.empty()) {
    throw read::BadInput(
        fmt::format("no rank has {} micro-batches, of which a step is made", in_step));
  }
  m.notes = found.unknown;
  if (in_step > 1) {
    m.notes.push_back(
        fmt::format("{} of the {} that were found are a step; the last of these, which may not be "
                    "whole, is left out",
                    in_step, found.whole_steps ? "steps" : "steps or micro-batches"));
  }
  say_left_out(m, others_left_out);
  for (const auto& [bucket, copies] : seldom) m.notes.push_back(text_of(bucket, copies));
  return m;
}

}  // namespace tprof::budget
