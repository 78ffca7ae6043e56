// The steps of a run that are compared with those of another.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "diff/compare.h"

namespace tprof::diff {

inline constexpr double kLeastOfStep = 0.01;  // less of a step is no change that anybody looks for

struct Usual {
  const Run& run;
  std::vector<const Step*> steps{};  // without those that stand out
  std::vector<double> lengths{};     // of all

  Usual(const Run& of, bool by_devices) : run(of) {
    for (const Step& s : run.steps) {
      lengths.push_back(by_devices ? s.device_ns
                                   : static_cast<double>(s.host_ns) / static_cast<double>(s.hosts));
    }
  }
  void leave_out(const std::vector<bool>& far) {
    for (std::size_t i = 0; i < far.size(); ++i) {
      if (!far[i]) steps.push_back(&run.steps[i]);
    }
  }
  double ranks() const {
    return static_cast<double>(std::max<std::uint64_t>(run.steps[0].calling, 1));
  }
};

// A figure of these steps, in their order: at least and at most, where it is not known better.
struct Series {
  std::vector<double> least{};
  std::vector<double> most{};
};
using Figures = std::map<std::pair<TimeChange::Of, OpKind>, Series>;

// The parts of a step and the times and bandwidths of its calls. `waiting_known`: it can be told
// from transfers.
Figures figures_of(const Usual& side, bool waiting_known);

// Leaves none out.
inline stats::FarAbove all_of(const std::vector<double>& a, const std::vector<double>& b) {
  return {std::vector<bool>(a.size()), std::vector<bool>(b.size())};
}

// Tells of the steps that stand out, and compares what they add to a step on average.
void compare_long_steps(const Usual& a, const Usual& b, const stats::FarAbove& far, Diff& to);

// The one step that is far longer than all others of both runs, if its run is so much longer, too:
// a host that ran ahead may wait for its device in one step for what it called in all. Else none.
stats::FarAbove one_pause(const Usual& a, const Usual& b);

}  // namespace tprof::diff
