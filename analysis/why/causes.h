// The causes, one row each. Their kinds are rows of check/kinds.h, their sentences rows of
// report/words_table.cpp.
#pragma once

#include "why/cause.h"

namespace tprof::why {

#define TPROF_CAUSES(X) \
  X(slow_ranks)         \
  X(below_peak)         \
  X(uneven_ranks)       \
  X(late_prefetch)      \
  X(gathers_behind)     \
  X(exposed_gathers)    \
  X(late_reductions)    \
  X(blocking_copies)    \
  X(exposed_copies)     \
  X(idle_devices)       \
  X(gathered_again)     \
  X(reduced_again)      \
  X(wide_dtype)         \
  X(step_series)

#define X(name) void name(const Evidence&, check::Findings&);
TPROF_CAUSES(X)
#undef X

}  // namespace tprof::why
