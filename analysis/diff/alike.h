// Whether a step of one run is the same thing as a step of the other.
#pragma once

#include <optional>
#include <vector>

#include "diff/run.h"

namespace tprof::diff {

bool same(long double a, long double b);  // but for the doubt of divisions

// The ratio that there is most often; of several 1, else the least; of none 1.
long double most_frequent(std::vector<long double> ratios);

// How often a rank makes calls of a kind that both have.
struct Often {
  OpKind kind{};
  long double step_a = 0;  // the usual one
  long double step_b = 0;
  long double total_a = 0;
  long double total_b = 0;
};

// A step that was found of one run has the work of several of the other's, which may be
// micro-batches of such a step.
struct Unlike {
  bool in_a = false;       // A's step is the one that has the work of several
  long double times = 0;   // of so many
  long double longer = 1;  // how many times as much work B did as A
};

// Goes by all calls but those that may be made once for several micro-batches.
// Nullopt: nothing speaks against comparing them.
std::optional<Unlike> unlike(const Run& a, const Run& b, const std::vector<Often>& kinds);

}  // namespace tprof::diff
