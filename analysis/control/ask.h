// Asks processes, and waits for their answers.
#pragma once

#include <chrono>
#include <vector>

#include "control/request.h"
#include "control/targets.h"

namespace tprof::control {

inline constexpr std::chrono::seconds kPatience{2};  // ten times what a running process takes

void ask_all(std::vector<Target>& targets, const Request& request);

// Makes all ranks of a job begin the window with the same step. That step is ahead of all ranks. If
// a rank had begun it before it heard, the next try is further ahead. Only the program's own marks
// say which steps of two ranks are the same. Returns what they were asked for in the end.
Request ask_for_window(std::vector<Target>& targets, const Request& request);

}  // namespace tprof::control
