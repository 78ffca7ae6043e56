// What was traced, from the traces themselves.
#pragma once

#include "diagnose/problem.h"
#include "doctor/report.h"
#include "match/jobs.h"

namespace tprof::doctor {

Report of_trace(const match::Job& job);

}  // namespace tprof::doctor
