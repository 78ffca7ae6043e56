// What would be traced of a command: the program that it comes to, its libraries, and what keeps a
// preload out or goes past it.
#pragma once

#include <string>
#include <vector>

#include "doctor/machine.h"
#include "doctor/report.h"

namespace tprof::doctor {

// Appends facts, functions and findings.
void examine_command(const std::vector<std::string>& command, const Library& library,
                     Report& report);

}  // namespace tprof::doctor
