// Running a command as if we were not there: its signals, its exit.
#pragma once

#include <string>
#include <vector>

#include "doctor/ask.h"

namespace tprof::cli {

// Runs `command` with `settings` added to the environment, passes on to it the signals that come
// to us, and returns its wait status.
int run_child(const std::vector<std::string>& command, const doctor::Settings& settings);

// Leaves as the command did: its exit code, or by the same signal.
[[noreturn]] void exit_like(int wait_status);

// Past RLIMIT_FSIZE a write of ours shall fail, with a message, and not end us by SIGXFSZ. Not
// before a command was started that would inherit it.
void let_writes_fail();

}  // namespace tprof::cli
