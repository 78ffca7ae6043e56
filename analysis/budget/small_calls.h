// Small calls that may be gradients of small parameters: where a figure is under what was expected,
// they fill the gap.
#pragma once

#include <optional>

#include "budget/figures.h"
#include "budget/model.h"

namespace tprof::budget {

// Returns the small calls that make up what is missing: whole kinds of calls where that is
// possible, else some calls of a kind. Nullopt: they do not make it up, or nothing is missing.
// `most`: so many calls may be taken.
std::optional<Figures> fill(const Figures& small, const Moved& moved, const Range& calls,
                            const Range& bytes, double most);

}  // namespace tprof::budget
