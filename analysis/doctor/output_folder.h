// Whether TPROF_OUTPUT_DIR works: by trying.
#pragma once

#include <string>

#include "doctor/report.h"

namespace tprof::doctor {

// `pattern`: the setting's value. `quota`: bytes of lines that a process may write, 0: no limit.
void examine_output(const std::string& pattern, std::uint64_t quota, Report& report);

}  // namespace tprof::doctor
