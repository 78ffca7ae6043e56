// Steps that nobody marked may be micro-batches: what was found is read as the one, then as the
// other, and where nothing tells them apart nobody is blamed.
#pragma once

#include <cstdint>
#include <functional>

#include "budget/compare.h"

namespace tprof::budget {

struct Reading {
  Measured measured{};
  Budget budget{};
  Compared compared{};
};

// Measures with steps that are made of so many of those that were found, where these may be
// micro-batches.
using Measure = std::function<Measured(std::uint64_t micro_batches)>;

// Compares with what the model should move. Throws BadInput that asks for the number of steps,
// where a step could be blamed for what may be several steps together.
Reading against(const Model& model, const Measure& measure);

// Compares with a budget, by steps of so many micro-batches. Throws BadInput that asks, where a
// step of the budget has the work of several that were found.
Reading against(const Budget& budget, std::uint64_t micro_batches, const Measure& measure);

}  // namespace tprof::budget
