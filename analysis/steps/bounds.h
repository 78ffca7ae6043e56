// Finds where steps end and begin around the reductions by which they are counted.
#pragma once

#include <cstddef>

#include "steps/anchor.h"

namespace tprof::steps {

// Returns how many operations after the last reduction still belong to the step. `closed`: the
// program came to its end.
std::size_t behind_last_reduction(const Order& text, const Anchor& a, bool closed);

// Returns how many operations right before `to`, back to `from`, are as in every period.
std::size_t same_before(const Order& text, const Anchor& a, std::size_t from, std::size_t to);

// Returns where the step whose last gradient is at `to` began: where its data came in.
std::size_t start_within(const Order& text, std::size_t from, std::size_t to, const Anchor& a);

}  // namespace tprof::steps
