#include "budget/measured.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "budget/model.h"
#include "interpose/base/hash.h"
#include "read/error.h"
#include "tables/groups.h"

namespace tprof::budget {
namespace {

Moved moved_of(const read::Amounts& a) {
  return {static_cast<double>(a.calls), static_cast<double>(a.bytes),
          static_cast<double>(a.elements)};
}

using read::Process;

constexpr std::size_t kMostNames = 4;
constexpr std::size_t kMostSetup = 3;
constexpr std::size_t kLongestList = 60;    // characters of step numbers
constexpr std::int64_t kCopyOfAnySize = 6;  // a copy from 64 bytes on
constexpr std::size_t kMostKeys = 4096;     // a limit for damaged files
constexpr std::size_t kMostSteps = std::size_t{1} << 20;
constexpr std::size_t kMostValues = std::size_t{1} << 22;

// The calls of each of a rank's steps.
struct RankSteps {
  void add(std::size_t step, Key key, const Moved& more) {
    if (step >= std::min(steps, kMostSteps)) return;  // an incomplete step
    if (is_copy(key.bucket) && !is_small(key.bucket, key.bytes_class, {})) {
      key.bytes_class = kCopyOfAnySize;  // batches differ
    }
    if (calls.size() >= kMostKeys && !calls.contains(key)) return;
    std::vector<Moved>& of = calls[key];
    if (step >= of.size()) {
      if (values >= kMostValues) return;
      values += step + 1 - of.size();
      of.resize(step + 1);
    }
    of[step] += more;
  }

  std::size_t steps = 0;
  std::map<Key, std::vector<Moved>> calls{};  // by step, up to the last that makes any
  std::size_t values = 0;                     // the total, which is bounded
};

Moved at(const std::vector<Moved>& calls, std::size_t step) {
  return step < calls.size() ? calls[step] : Moved{};
}

// Returns a number for each step; equal steps have equal numbers.
std::vector<std::uint64_t> numbers_of(const RankSteps& rank) {
  std::vector<std::uint64_t> all(std::min(rank.steps, kMostSteps));
  for (const auto& [key, calls] : rank.calls) {
    if (!tells_steps_apart(key)) continue;
    const std::uint64_t what = fnv1a(key.name.str()) ^ mix64(fnv1a(key.dtype.str()));
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto [n, bytes, elements] = calls[i];
      if (n != 0)
        all[i] +=
            mix64(what + mix64(static_cast<std::uint64_t>(bytes)) + static_cast<std::uint64_t>(n));
    }
  }
  return all;
}

// Returns the number that more than half of the steps have; equal steps have equal numbers.
std::optional<std::uint64_t> usual_step(const std::vector<std::uint64_t>& steps) {
  std::map<std::uint64_t, std::size_t> times;
  for (const std::uint64_t step : steps) {
    if (2 * ++times[step] > steps.size()) return step;
  }
  return std::nullopt;
}

// Returns how many of the first steps are setup: at most three, and no later step makes the same
// calls as the last of them. Without a usual step, the others count.
std::size_t setup_steps(const std::vector<std::uint64_t>& steps) {
  const std::size_t first = std::min(kMostSetup + 1, steps.size());
  const auto later = steps.begin() + static_cast<std::ptrdiff_t>(first) - (first == 0 ? 0 : 1);
  for (auto step = later; step != steps.begin(); --step) {
    if (std::find(later, steps.end(), step[-1]) == steps.end()) {
      return static_cast<std::size_t>(step - steps.begin());
    }
  }
  return 0;
}

struct Usual {
  Figures figures{};
  // Copies and small calls by the two-thirds quantile of steps, where `figures` has the median. A
  // budget then includes a batch or a log of every other step.
  Figures often{};
  std::size_t steps = 0;  // in these figures
  std::size_t left_out = 0;
  bool usual = false;     // left out are unusual steps; else the first ones
  std::size_t setup = 0;  // how many of the first steps are setup
  // NCCL calls of unusual steps relative to the usual step, by step index. Communicators are not
  // distinguished by their ranks.
  std::map<std::size_t, Figures> others{};
  std::set<Bucket> seldom{};  // copies in less than a third of the steps: in no figure
};

Usual usual_of(const RankSteps& rank) {
  const std::vector<std::uint64_t> numbers = numbers_of(rank);
  const std::optional<std::uint64_t> most = usual_step(numbers);
  Usual u{.usual = most.has_value(), .setup = setup_steps(numbers)};
  std::vector<std::size_t> counted;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (most ? numbers[i] == *most : i >= u.setup) counted.push_back(i);
  }
  u.steps = counted.size();
  u.left_out = numbers.size() - u.steps;
  if (counted.empty()) return u;
  for (const auto& [key, calls] : rank.calls) {
    std::vector<Moved> steps;
    Moved sum;
    for (const std::size_t i : counted) sum += steps.emplace_back(at(calls, i));
    const bool alike = tells_steps_apart(key);  // in all of these, if a step is usual
    Moved usual = alike && u.usual ? steps[0] : sum / static_cast<double>(u.steps);
    if (!alike) {
      std::ranges::sort(steps, {}, [](const Moved& m) { return std::pair(m.bytes, m.calls); });
      usual = steps[(steps.size() - 1) / 2];
      const Moved& often = steps[std::min(2 * steps.size() / 3, steps.size() - 1)];
      if (often.calls != 0) u.often[key] = often;
      const bool batch = key.bucket == Bucket::H2D || key.bucket == Bucket::D2H;
      if (batch && often.calls == 0 && key.bytes_class == kCopyOfAnySize) {
        u.seldom.insert(key.bucket);
      }
    }
    if (usual.calls != 0) u.figures[key] = usual;
    Key of_any = key;
    of_any.nranks = 0;
    for (std::size_t i = 0; u.usual && !is_copy(key.bucket) && i < numbers.size(); ++i) {
      const Moved more = at(calls, i) - usual;
      if (numbers[i] != *most && more != Moved{}) u.others[i][of_any] += more;
    }
  }
  return u;
}

Key key_of(Key op) {
  op.comm_id = {};
  return op;
}

// If a step has several found ones, the last step may lack what follows it, such as an optimizer's
// all-gathers.
std::size_t whole_steps(std::size_t found, std::size_t in_step) {
  const std::size_t steps = found / in_step;
  return in_step > 1 && found % in_step == 0 && steps > 1 ? steps - 1 : steps;
}

// Calls take(rank, its calls in steps of `in_step` found ones).
template <typename Take>
void each_rank(const run::Lines& lines, const steps::Found& found, std::size_t in_step, bool copies,
               const Take& take) {
  for (const auto& [rank, of_rank] : found.lines) {  // counted by the ranks' writers
    RankSteps steps{whole_steps(of_rank.size(), in_step)};
    for (std::size_t i = 0; i < of_rank.size(); ++i) {
      for (const read::Row& row : of_rank[i].rows) {
        if (!copies && is_copy(row.bucket)) continue;
        steps.add(i / in_step, key_of(tables::op_of(row, *rank)), moved_of(row.amounts));
      }
    }
    take(*rank, steps);
  }
  if (found.exact) return;
  const auto in_which_step = [&](const Process& rank) {
    const auto of_rank = found.ranks.find(&rank);
    const auto* all = of_rank == found.ranks.end() ? nullptr : &of_rank->second;
    return
        [=, &rank](const read::Event& e) -> std::optional<std::pair<std::size_t, tables::OpKey>> {
          const auto* at = all == nullptr ? nullptr : steps::interval_at(*all, e.ts_ns);
          if (at == nullptr || (!copies && is_copy(e.bucket))) return std::nullopt;
          return std::pair(static_cast<std::size_t>(at - all->data()) / in_step,
                           tables::op_of(e, rank));
        };
  };
  using Groups = tables::RankGroups<Moved, decltype(in_which_step(std::declval<const Process&>()))>;
  lines.each([&](const Process& rank) { return Groups(rank, in_which_step(rank)); },
             [&](const Groups& of) {
               const auto intervals = found.ranks.find(&of.rank);
               if (intervals == found.ranks.end()) return;
               RankSteps steps{whole_steps(intervals->second.size(), in_step)};
               for (const auto& [key, moved] : of.found) {
                 steps.add(key.first, key_of(key.second), moved);
               }
               take(of.rank, steps);
             });
}

// Returns the calls beyond those of the usual step.
double more_calls(const Figures& figures) {
  double calls = 0;
  for (const auto& [key, moved] : figures) calls += std::max(0.0, moved.calls);
  return calls;
}

// Ranks by what they moved, with the maximum of Usual::often.
using Alike = std::map<Figures, std::pair<check::Processes, Figures>>;

void add(Alike& to, const Process& rank, const Figures& figures, const Figures& often) {
  auto& [ranks, most] = to[figures];
  ranks.push_back(&rank);
  for (const auto& [key, moved] : often) most[key] = std::max(most[key], moved);
}

std::vector<Group> groups_of(const Alike& alike) {
  std::vector<Group> all;
  for (const auto& [figures, of] : alike) all.push_back({Members(of.first), figures, of.second});
  std::ranges::stable_sort(all, [](const Group& a, const Group& b) {
    return std::pair(b.ranks.size(), a.ranks) < std::pair(a.ranks.size(), b.ranks);
  });
  return all;
}

// Notes the steps that are left out. `others`: they have unusual collectives.
void say_left_out(Measured& m, bool others) {
  if (m.left_out == 0) return;
  const std::string steps = m.left_out == 1 ? "step" : text::thousands(m.left_out) + " steps";
  m.notes.push_back(
      others ? fmt::format("the figures leave out {}{} with unusual collectives (setup, "
                           "evaluation, checkpoint?): tprof summary --by step lists them",
                           m.left_out == 1 ? "1 " : "", steps)
             : fmt::format("the figures leave out the first {} with collectives that no later step "
                           "makes (setup)",
                           steps));
}

Measured of_ledgers(const job::Job& job, std::uint64_t steps, bool copies) {
  Measured m{.steps = steps};
  Alike alike;
  for (const Process* p : job.processes) {
    if (p->comms.empty()) continue;  // a child, or without collectives
    Figures figures;
    tables::each_row(*p, [&](const read::Row& row) {
      if (!copies && is_copy(row.bucket)) return;
      figures[key_of(tables::op_of(row, *p))] += moved_of(row.amounts);
    });
    for (auto& [key, sum] : figures) sum = sum / static_cast<double>(steps);
    add(alike, *p, figures, figures);
  }
  m.groups = groups_of(alike);
  if (m.groups.empty()) {
    throw read::BadInput(
        "no rank has a communicator: a budget needs collectives (tprof doctor PATH says what may "
        "be missed)");
  }
  m.notes.push_back(
      fmt::format("the figures are those of the whole run divided by {} steps, including setup, "
                  "evaluations and checkpoints",
                  text::thousands(steps)));
  return m;
}

Measured of_steps(const run::Lines& lines, const steps::Found& found, std::size_t in_step,
                  const Asked& asked) {
  const bool may_be_either = !found.whole_steps && asked.steps == 0;
  Measured m{.from = found.exact ? Measured::From::step_lines : Measured::From::lines,
             .found = found.steps.size(),
             .may_be_steps = in_step > 1 && may_be_either,
             .may_be_micro_batches = in_step == 1 && may_be_either && !asked.each_is_step,
             .notes = found.unknown};
  Alike alike;
  std::set<Bucket> seldom;
  bool others_left_out = false;
  each_rank(lines, found, in_step, asked.copies, [&](const Process& rank, const RankSteps& steps) {
    const Usual of = usual_of(steps);
    if (of.steps == 0) return;
    add(alike, rank, of.figures, of.often);
    if (of.left_out > m.left_out) others_left_out = of.usual;
    m.left_out = std::max(m.left_out, of.left_out);
    for (const auto& [i, figures] : of.others) {
      const std::int64_t step =
          in_step == 1 ? found.ranks.at(&rank)[i].step : static_cast<std::int64_t>(i) + 1;
      Figures& most = (i < of.setup ? m.setup : m.other_steps)[step];
      if (most.empty() || more_calls(figures) > more_calls(most)) most = figures;
    }
    seldom.insert(of.seldom.begin(), of.seldom.end());
    if (of.steps > m.steps) m.usual = of.usual;
    m.steps = std::max(m.steps, of.steps);
  });
  m.groups = groups_of(alike);
  if (m.groups.empty()) {
    throw read::BadInput(fmt::format("no rank has the {} micro-batches of a step", in_step));
  }
  if (in_step > 1) {
    m.notes.push_back(
        fmt::format("a step is {} of the {} that were found; the last step is left out, as it may "
                    "be incomplete",
                    in_step, found.whole_steps ? "steps" : "steps or micro-batches"));
  }
  say_left_out(m, others_left_out);
  for (const Bucket bucket : seldom) {
    m.notes.push_back(
        fmt::format("the figures leave out {}, as only a few steps have any", bucket_name(bucket)));
  }
  return m;
}

}  // namespace

Members::Members(const check::Processes& all) : numbers(check::ranks_of(all)) {
  for (const read::Process* p : all) {
    if (!p->header.rank) others.push_back(check::name_of(*p));
  }
  std::ranges::sort(others);
}

void Members::add(const Members& more) {
  numbers.add(more.numbers);
  others.insert(others.end(), more.others.begin(), more.others.end());
  std::ranges::sort(others);
}

std::string Members::list() const {
  std::vector<std::string> parts;
  if (!numbers.empty()) parts.push_back(numbers.str());
  const std::size_t named = std::min(others.size(), kMostNames);
  parts.insert(parts.end(), others.begin(), others.begin() + static_cast<std::ptrdiff_t>(named));
  const std::string all = fmt::format("{}", fmt::join(parts, ", "));
  if (named == others.size()) return all;
  return all + fmt::format(" and {} more processes", text::thousands(others.size() - named));
}

std::string Members::names() const {
  if (numbers.empty()) return list();
  return (numbers.size() == 1 ? "rank " : "ranks ") + list();
}

// Returns how many of the found steps make a step: more than 1 if they may be micro-batches, or if
// the job made fewer.
static std::size_t found_in_step(const steps::Found& found, const Asked& asked) {
  const std::size_t n = found.steps.size();
  if (asked.steps != 0) return n >= asked.steps && n % asked.steps == 0 ? n / asked.steps : 0;
  return found.whole_steps ? 1 : asked.micro_batches;
}

Measured measure(const run::Lines& lines, const Asked& asked) {
  const job::Job& job = lines.job();
  const steps::Found found = steps::find(lines);
  const bool known = found.how != steps::How::none;
  if (!known && asked.steps == 0) {
    throw read::BadInput("no steps are known: " + found.why +
                         "; --steps N says how many the job made");
  }
  const std::size_t in_step = known ? found_in_step(found, asked) : 0;
  Measured m = in_step == 0 ? of_ledgers(job, asked.steps, asked.copies)
                            : of_steps(lines, found, in_step, asked);
  m.unreadable = lines.unreadable();
  m.nranks = job.world_size.value_or(static_cast<std::int64_t>(job.ranks.size()));
  if (in_step == 0 && known) {
    m.notes.push_back(
        fmt::format("{} steps or micro-batches were found, which is no multiple of {}",
                    text::thousands(found.steps.size()), text::thousands(asked.steps)));
  }
  return m;
}

void add(Moved& to, const read::Event& event, const read::DeviceTime*) {
  to += moved_of(read::amounts_of(event));
}

bool tells_steps_apart(const Key& key) {
  return !is_copy(key.bucket) && !is_small(key.bucket, key.bytes_class, {});
}

std::string steps_have(const std::vector<std::int64_t>& steps) {
  const std::string list = text::ranges(steps);
  if (list.size() > kLongestList) return text::thousands(steps.size()) + " steps have";
  return fmt::format("{} {} {}", steps.size() == 1 ? "step" : "steps", list,
                     steps.size() == 1 ? "has" : "have");
}

}  // namespace tprof::budget
