#include "budget/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "budget/model.h"
#include "interpose/base/hash.h"
#include "read/error.h"
#include "stats/totals.h"
#include "text/text.h"

namespace tprof::budget {
namespace {

using read::Process;

constexpr std::size_t kMostSetup = 3;

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

struct Means {
  Figures figures{};
  std::size_t steps = 0;  // that they are of
  std::size_t left_out = 0;
  bool usual = false;  // these are those that differ from most; else the first
};

// The calls of a rank in its steps: their sums, and the first steps each.
class Steps {
 public:
  explicit Steps(std::size_t steps) : calls_(steps), first_(std::min(steps, kKept)) {}

  void add(std::size_t step, const Key& key, const read::Amounts& amounts) {
    if (step >= calls_.size()) return;  // the rest, which is no whole step
    const Moved more = moved(amounts);
    if (all_.size() < kMost || all_.contains(key)) all_[key] += more;
    if (step < first_.size()) first_[step][key] += more;
    if (!is_judged(key)) return;
    const std::uint64_t what = fnv1a(key.function) ^ mix64(fnv1a(key.dtype));
    calls_[step] += mix64(what + amounts.bytes) * amounts.calls;  // in any order
  }

  Means means() const {
    const std::optional<std::uint64_t> usual = usual_step(calls_);
    const auto kept = calls_.begin() + static_cast<std::ptrdiff_t>(first_.size());
    const auto known = usual ? std::find(calls_.begin(), kept, *usual) : kept;
    const std::size_t setup = setup_steps(calls_);
    Means m{.steps = calls_.size() - setup, .left_out = setup};
    for (auto [key, sum] : all_) {
      for (std::size_t i = 0; i < setup; ++i) {
        const auto of = first_[i].find(key);
        if (of != first_[i].end()) sum -= of->second;
      }
      if (sum.calls != 0) m.figures[key] = sum / static_cast<double>(m.steps);
    }
    if (known == kept) return m;
    // Steps like most are all equal in what tells them apart.
    std::erase_if(m.figures, [](const auto& f) { return is_judged(f.first); });
    for (const auto& [key, sum] : first_[static_cast<std::size_t>(known - calls_.begin())]) {
      if (is_judged(key)) m.figures[key] = sum;
    }
    m.usual = true;
    m.steps = static_cast<std::size_t>(std::ranges::count(calls_, *usual));
    m.left_out = calls_.size() - m.steps;
    return m;
  }

 private:
  // Norms, losses and barriers come and go, and batches differ.
  static bool is_judged(const Key& key) {
    return !is_copy(key.bucket) && !is_small(key.bucket, key.bytes_class, {});
  }

  static constexpr std::size_t kMost = 4096;  // keys of a damaged file
  static constexpr std::size_t kKept = 16;

  std::vector<std::uint64_t> calls_;  // of each step: equal ones have equal numbers
  Figures all_;
  std::vector<Figures> first_;
};

struct Lines : collect::Collector {
  Lines(const Process& rank, const std::vector<steps::Interval>& all, std::size_t of_step,
        bool with_copies)
      : Collector(rank),
        intervals(all),
        in_step(of_step),
        copies(with_copies),
        steps(whole_steps(all.size(), of_step)) {}

  void call(const read::Event& e) override {
    if (e.unfinished || e.failed || e.captured) return;
    const steps::Interval* at = steps::interval_at(intervals, e.ts_ns);
    if (at == nullptr) return;
    const auto step = static_cast<std::size_t>(at - intervals.data()) / in_step;
    if (copies || !is_copy(e.bucket)) {
      steps.add(step, key_of(stats::op_of(e, rank_)), stats::amounts_of(e));
    }
  }
  void end() override {
    found = steps.means();
    steps = Steps(0);
  }
  void state(team::Archive& archive) override { archive(found); }

  const std::vector<steps::Interval>& intervals;
  std::size_t in_step;
  bool copies;
  Steps steps;
  Means found;
};

class Grouper {
 public:
  void add(const Process& rank, const Figures& figures) {
    groups_[figures].push_back(rank.header.rank.value_or(-1));
  }
  std::vector<Group> finish() {
    std::vector<Group> all;
    for (auto& [figures, ranks] : groups_) {
      std::ranges::sort(ranks);
      all.push_back({std::move(ranks), figures});
    }
    std::ranges::stable_sort(all, [](const Group& a, const Group& b) {
      return std::pair(b.ranks.size(), a.ranks[0]) < std::pair(a.ranks.size(), b.ranks[0]);
    });
    return all;
  }

 private:
  std::map<Figures, std::vector<std::int64_t>> groups_;
};

Measured of_ledgers(const job::Job& job, std::uint64_t steps, bool copies) {
  Measured m{.from = Measured::From::ledger, .steps = steps};
  Grouper grouper;
  for (const Process* p : job.processes) {
    if (p->comms.empty()) continue;  // a child, or it made no collective
    Figures figures;
    stats::each_row(*p, [&](const read::Row& row) {
      if (!copies && is_copy(row.bucket)) return;
      figures[key_of(stats::op_of(row, *p))] += moved(row.amounts);
    });
    const auto n = static_cast<double>(steps);
    for (auto& [key, sum] : figures) sum = sum / n;
    grouper.add(*p, figures);
  }
  m.groups = grouper.finish();
  m.notes.push_back(fmt::format(
      "the figures are those of the whole run divided by {} steps, so setup, evaluations and "
      "checkpoints are in them",
      text::thousands(steps)));
  return m;
}

}  // namespace

std::size_t found_in_step(const steps::Found& found, const Asked& asked) {
  const std::size_t n = found.steps.size();
  if (asked.steps != 0) return n >= asked.steps && n % asked.steps == 0 ? n / asked.steps : 0;
  return found.whole_steps ? 1 : asked.micro_batches;
}

std::optional<std::uint64_t> usual_step(const std::vector<std::uint64_t>& steps) {
  std::map<std::uint64_t, std::size_t> times;
  for (const std::uint64_t step : steps) {
    if (2 * ++times[step] > steps.size()) return step;
  }
  return std::nullopt;
}

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

Measured measure(const job::Job& job, const read::Traces& traces, const Asked& asked,
                 const std::function<void(std::size_t)>& progress) {
  collect::Passes passes(job, traces, progress);
  steps::Found found;
  steps::want(passes, found);
  // A file that can't be read has no steps, so the next pass does not look at it.
  std::vector<read::Skipped> unreadable;
  passes.want([](const Process&, collect::Collectors&) {},
              [&](const collect::Lines& lines) { unreadable = lines.unreadable(); });
  passes.read();
  const bool known = found.how != steps::How::none;
  const std::size_t in_step = known ? found_in_step(found, asked) : 0;
  if (!known && asked.steps == 0) {
    throw read::BadInput("no steps are known: " + found.why +
                         "; --steps N says how many the job made");
  }
  if (in_step == 0) {
    Measured m = of_ledgers(job, asked.steps, asked.copies);
    m.unreadable = std::move(unreadable);
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
             .may_be_micro_batches = in_step == 1 && !found.whole_steps && asked.steps == 0,
             .unreadable = std::move(unreadable)};
  Grouper grouper;
  Means left_out;
  const auto take = [&](const Process& rank, const Means& means) {
    if (means.steps == 0) return;
    grouper.add(rank, means.figures);
    if (means.left_out > left_out.left_out) left_out = means;
    m.steps = std::max(m.steps, means.steps);
  };
  if (found.exact) {
    for (const auto& [rank, lines] : found.lines) {
      Steps steps(whole_steps(lines.size(), in_step));
      for (std::size_t i = 0; i < lines.size(); ++i) {
        for (const read::Row& row : lines[i].rows) {
          if (!asked.copies && is_copy(row.bucket)) continue;
          steps.add(i / in_step, key_of(stats::op_of(row, *rank)), row.amounts);
        }
      }
      take(*rank, steps.means());
    }
  } else {
    passes.want(
        [&](const Process& rank, collect::Collectors& all) {
          const auto intervals = found.ranks.find(&rank);
          if (intervals == found.ranks.end()) return;
          collect::want<Lines>(rank, all, intervals->second, in_step, asked.copies);
        },
        [&](const collect::Lines& lines) {
          for (const auto& [rank, intervals] : found.ranks) {
            if (const Lines* of = lines.of<Lines>(rank)) take(*rank, of->found);
          }
          const auto& more = lines.unreadable();
          m.unreadable.insert(m.unreadable.end(), more.begin(), more.end());
        });
    passes.read();
  }
  m.left_out = left_out.left_out;
  m.groups = grouper.finish();
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
  if (left_out.left_out != 0) {
    m.notes.push_back(fmt::format(
        fmt::runtime(left_out.usual
                         ? "the figures leave out {}, with other collectives than most "
                           "(setup, evaluation, checkpoint)"
                         : "the figures leave out the first {}, with collectives that no "
                           "later one makes (setup)"),
        left_out.left_out == 1 ? left_out.usual ? "1 step" : "step"
                               : text::thousands(left_out.left_out) + " steps"));
  }
  return m;
}

}  // namespace tprof::budget
