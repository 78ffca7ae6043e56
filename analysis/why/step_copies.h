// Adds to slow ranks or long steps what they copy more than others: that may be the reason.
#pragma once

#include <cstddef>
#include <vector>

#include "why/cause.h"

namespace tprof::why {

// Adds what these ranks copy and communicate in these steps (indices into Evidence::steps) but not
// in others: a checkpoint, an evaluation, a metric.
void tell_copies_of_steps(const Evidence& e, const std::vector<std::size_t>& ranks,
                          const std::vector<std::size_t>& steps, check::Finding& f);

// Adds advice on steps that are long on all ranks. If nothing is known about them yet, also adds
// the calls that most ranks make more of in them, or in the steps before: a log.
void tell_calls_of_steps(const Evidence& e, const std::vector<std::size_t>& steps,
                         check::Finding& f);

// Adds what these slow ranks copy more than the others.
void tell_copies_of_ranks(const Evidence& e, const std::vector<std::size_t>& ranks, bool batches,
                          check::Finding& f);

}  // namespace tprof::why
