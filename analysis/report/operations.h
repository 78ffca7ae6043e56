// The operations of a job, a row for each, and how many, how large and how fast its calls were.
#pragma once

#include <string>

#include "report/json.h"
#include "summary/summary.h"

namespace tprof::report {

// The property that tells the rows of one operation apart.
enum class Beside { size, nothing, communicator, dtype };

std::string operation_table(const stats::Summary& summary, Beside beside);

// Returns each operation by itself: of a size, a dtype and a communicator.
Json operations_json(const stats::Summary& summary);

}  // namespace tprof::report
