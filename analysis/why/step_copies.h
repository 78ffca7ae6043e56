// Says of ranks or steps that take longer what they copy more than others, as that may be why.
#pragma once

#include <cstddef>
#include <vector>

#include "why/cause.h"

namespace tprof::why {

// Adds to the finding what these ranks copy between host and device and communicate in these steps
// (places in Evidence::steps), and not in the others: a checkpoint, an evaluation, a metric.
void tell_copies_of_steps(const Evidence& e, const std::vector<std::size_t>& ranks,
                          const std::vector<std::size_t>& steps, check::Finding& f);

// Adds to a finding of steps that are long on all ranks what to do; and if nothing is known of them
// yet, which calls most ranks make more in them, or in the steps before them, than elsewhere: a
// log.
void tell_calls_of_steps(const Evidence& e, const std::vector<std::size_t>& steps,
                         check::Finding& f);

// Adds what these ranks, which take longer for this part of each step, copy more than the others.
void tell_copies_of_ranks(const Evidence& e, const std::vector<std::size_t>& ranks, bool batches,
                          check::Finding& f);

}  // namespace tprof::why
