// What was traced, from the traces themselves.
#pragma once

#include "diagnose/problem.h"
#include "doctor/report.h"
#include "job/jobs.h"
#include "read/folder.h"

namespace tprof::doctor {

// `skipped`: files that lay beside the job's.
Report of_trace(const match::Job& job, const std::vector<read::Skipped>& skipped);

}  // namespace tprof::doctor
