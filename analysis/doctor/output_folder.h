// Whether TPROF_OUTPUT_DIR works, by trying, and where the ring files will be.
#pragma once

#include <string>

#include "doctor/report.h"

namespace tprof::doctor {

// `pattern`: the setting's value. `ring_dir`: TPROF_RING_DIR, "": none. `quota`: bytes of lines
// that a process may write, 0: no limit.
void examine_output(const std::string& pattern, const std::string& ring_dir, std::uint64_t quota,
                    Report& report);

}  // namespace tprof::doctor
