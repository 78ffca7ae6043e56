// Links that are slow, always or in some steps.
#pragma once

#include <vector>

#include "why/slow_ranks.h"

namespace tprof::why {

// Returns those that may always be slow, and all of them together.
std::vector<Slow> slow_links(const Evidence& e);
// Returns those whose transfers take longer in some steps, and all of them together.
std::vector<Slow> links_slow_at_times(const Evidence& e);

// Says in the finding which link it is and, if it is always slow, how slow.
void tell_link(const Evidence& e, const Slow& slow, check::Finding& f);

}  // namespace tprof::why
