// Says of a device that stands idle where in its steps that is.
#pragma once

#include "why/idle.h"
#include "why/slow_ranks.h"

namespace tprof::why {

// In which steps it does, as Say::idle_within has it.
check::Values when_of(const Slow& ranks);

// Adds that, and what to look at, where most of it lies in one place.
void tell_place(const Idle& idle, const check::Values& when, check::Finding& f);

}  // namespace tprof::why
