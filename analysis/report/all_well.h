// The verdict on a job of which no finding says more.
#pragma once

#include "report/verdict.h"

namespace tprof::report {

// That nothing is wrong, as far as that is known; else how far ranks are that still run, or that
// ranks did not close. The text is no sentence yet.
JobVerdict all_well(const diagnose::Diagnosed& said, const Known& known);

}  // namespace tprof::report
