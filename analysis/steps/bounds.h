// Where steps end and begin around the reductions that they are counted by.
#pragma once

#include <cstddef>

#include "steps/anchor.h"

namespace tprof::steps {

// How many operations behind the last reduction still are of the step. `closed`: the program came
// to its end.
std::size_t behind_last_reduction(const Order& text, const Anchor& a, bool closed);

// Up to the operation at `to`, in the text behind `from`: how many are as in every period.
std::size_t same_before(const Order& text, const Anchor& a, std::size_t from, std::size_t to);

// Where the step began whose last gradient is at `to`: where its data came in.
std::size_t start_within(const Order& text, std::size_t from, std::size_t to, const Anchor& a);

}  // namespace tprof::steps
