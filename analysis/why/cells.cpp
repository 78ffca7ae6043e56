#include "why/cells.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tprof::why {
namespace {

using run::Interval;
using run::Intervals;

// A copy to the host looks like computation shorter than this.
constexpr std::int64_t kMomentNs = 50'000;
// A pause after the last step is at least this fraction of the step.
constexpr std::int64_t kPartsOfStep = 50;

struct OnDevice : Interval {
  bool untimed = false;  // it is unknown when its calls ran
};

class Filler {
 public:
  Filler(const run::Rank& rank, const std::vector<StepOfRank>& steps)
      : rank_(rank), steps_(steps), on_device_(steps.size()) {
    const run::Calls& c = rank.calls;
    Intervals launches;
    for (std::size_t i = 0; i < c.size(); ++i) {
      const Interval span{c.came_ns[i], c.ended_ns[i]};
      if (c.is[i].launch) {
        launches.push_back(span);
      } else if (c.comm[i] == run::Calls::kNoComm) {
        copies_.push_back(span);
      } else {
        communicates_.push_back(span);
        waits_.push_back({span.from_ns, c.is[i].met ? c.all_came_ns[i] : span.to_ns});
        if (c.is[i].met) known_waits_.push_back(waits_.back());
      }
    }
    for (Intervals* all : {&launches, &copies_, &communicates_, &waits_, &known_waits_}) {
      *all = run::joined(std::move(*all));
    }
    computes_ = run::either(rank.unsure.empty() ? rank.work : rank.sure, launches);
  }

  void fill(bool marked, RankFacts& facts) {
    if (computes_.empty()) return;
    put_in_steps();
    if (!marked) begin_behind_the_step_before();
    fill_times();
    count_reads(marked);
    const Intervals hidden = run::common(known_waits_, computes_);
    for (const StepOfRank& s : steps_) {
      if (!s.counts || !s.cell->known()) continue;
      ++facts.steps;
      facts.unmet_ns += std::llround(s.cell->wait) - (run::covered(known_waits_, on_device(s)) -
                                                      run::covered(hidden, on_device(s)));
    }
  }

 private:
  const OnDevice& on_device(const StepOfRank& s) const {
    return on_device_[static_cast<std::size_t>(&s - steps_.data())];
  }

  // A host may run steps ahead of its device. A device's step begins when the calls of the previous
  // step are done; if the host waits for the device, that is at the mark.
  void put_in_steps() {
    const run::Calls& c = rank_.calls;
    const std::vector<std::size_t> rows = run::by_call(c);
    std::int64_t done = INT64_MIN;
    auto next = rows.begin();
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      std::uint64_t timed = 0;
      const run::Step& step = *steps_[s].step;
      const auto called_before = [&](std::int64_t mark) {
        for (; next != rows.end() && c.called_ns[*next] < mark; ++next) {
          if (c.comm[*next] == run::Calls::kNoComm) continue;
          if (c.called_ns[*next] >= step.from_ns) timed += c.made[*next];
          done = std::max(done, c.ended_ns[*next]);
        }
        // Work belongs to the step before if the next row comes later.
        const auto work =
            next == rows.end() ? computes_.begin() : run::first_after(computes_, c.came_ns[*next]);
        if (work != computes_.begin()) done = std::max(done, std::prev(work)->to_ns);
        return std::max(mark, done);
      };
      on_device_[s].from_ns = called_before(step.from_ns);
      on_device_[s].to_ns = called_before(step.to_ns);
      on_device_[s].untimed = timed * 20 < step.to_time * 19;
    }
  }

  // If the program marks no steps, a host that is late with a batch is late between two steps,
  // while the ranks that wait for it do so in the second. So the second step begins when the first
  // has ended.
  void begin_behind_the_step_before() {
    const Intervals works = run::either(run::either(communicates_, computes_), rank_.unsure);
    const auto is_of_copy = [&](const Interval& i) {
      const auto copy = run::first_after(copies_, i.from_ns);
      return i.ns() < kMomentNs && copy != copies_.end() && copy->from_ns < i.to_ns;
    };
    // After the last of several steps the program does something else, such as an evaluation.
    // Device work before the next copy belongs to that if the device was idle for far longer before
    // it.
    const auto of_the_rest = [&](Intervals::const_iterator i, std::int64_t to_ns,
                                 std::int64_t step) {
      if (i == works.begin()) return false;
      const std::int64_t idle = i->from_ns - std::prev(i)->to_ns;
      return idle > 10 * (to_ns - i->from_ns) && idle * kPartsOfStep > step;
    };
    const auto begin = [&](std::int64_t step_ns, std::int64_t least_ns, bool last) {
      std::int64_t from = step_ns;
      // The copy that begins the step may have begun a moment earlier.
      auto i = run::first_after(works, step_ns - 1);
      const bool busy = i != works.end() && i->from_ns < step_ns - kMomentNs;
      const std::int64_t length = step_ns - least_ns;
      if (busy && !(last && of_the_rest(i, step_ns, length))) return step_ns;
      while (i != works.begin() && (--i)->to_ns > least_ns) {
        from = i->to_ns;
        if (!is_of_copy(*i) && !(last && of_the_rest(i, i->to_ns, length))) break;
      }
      return from;
    };
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      const bool last =
          s + 1 == steps_.size() || steps_[s + 1].step->from_ns != steps_[s].step->to_ns;
      on_device_[s].to_ns = begin(on_device_[s].to_ns, on_device_[s].from_ns, last);
      if (!last) on_device_[s + 1].from_ns = on_device_[s].to_ns;
    }
  }

  void fill_times() {
    const Intervals hidden = run::common(communicates_, computes_);
    const Intervals hidden_waits = run::common(waits_, computes_);
    bool known_before = true;
    for (const StepOfRank& s : steps_) {
      const OnDevice& here = on_device(s);
      const auto in = [&](const Intervals& what) { return run::covered(what, here); };
      // When a window begins, the device may still be busy with earlier calls.
      const bool follows = here.ns() > 0 && in(rank_.followed) * 10 >= here.ns() * 9;
      const bool began = std::exchange(known_before, follows || !rank_.windows);
      if (here.untimed || !follows || !began) continue;
      // Not every window ends with a line. Nothing is seen to run in a step between two windows.
      const std::int64_t unknown = in(rank_.unsure);
      const bool runs = in(computes_) + in(communicates_) > 0;
      if (!runs || unknown * 10 > here.ns() * 9) continue;
      Cell& cell = *s.cell;
      cell.length = static_cast<float>(here.ns());
      cell.behind_ns = here.from_ns - s.step->from_ns;
      cell.compute = static_cast<float>(in(computes_));
      cell.unsure = static_cast<float>(unknown);
      cell.hidden = static_cast<float>(in(hidden));
      cell.exposed = static_cast<float>(in(communicates_)-in(hidden));
      cell.missing = static_cast<float>(in(waits_));
      cell.wait = static_cast<float>(in(waits_)-in(hidden_waits));
    }
  }

  // Reads and checkpoints after the device has finished a step belong to the time until the next
  // step.
  void count_reads(bool marked) {
    std::size_t s = 0;
    for (const run::Copy& read : rank_.reads) {
      while (s != steps_.size() && steps_[s].step->to_ns <= read.called_ns) ++s;
      if (s == steps_.size() || read.called_ns < steps_[s].step->from_ns) continue;
      const bool behind = !marked && steps_[s].cell->known() &&
                          read.called_ns >= on_device_[s].to_ns && s + 1 != steps_.size() &&
                          steps_[s + 1].step->from_ns == steps_[s].step->to_ns;
      Cell& c = *steps_[behind ? s + 1 : s].cell;
      c.to_host += static_cast<float>(read.bytes);
      ++c.reads;
    }
  }

  const run::Rank& rank_;
  const std::vector<StepOfRank>& steps_;
  std::vector<OnDevice> on_device_;
  Intervals communicates_{};
  Intervals waits_{};
  Intervals known_waits_{};  // in which a rank is known to have been missing
  Intervals copies_{};
  Intervals computes_{};
};

}  // namespace

void fill_cells(const run::Rank& rank, bool marked, const std::vector<StepOfRank>& steps,
                RankFacts& facts) {
  facts.messages = rank.stage_messages;
  facts.exchanged = rank.exchanged;
  for (const StepOfRank& s : steps) {
    s.cell->to_device = static_cast<float>(s.step->to_device);
    s.cell->sent = static_cast<float>(s.step->sent);
    s.cell->collectives = static_cast<float>(s.step->collectives);
  }
  Filler(rank, steps).fill(marked, facts);
}

}  // namespace tprof::why
