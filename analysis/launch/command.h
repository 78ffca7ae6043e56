// Runs a command as if we were not there, as to its signals and its exit.
#pragma once

#include <string>
#include <vector>

#include "doctor/ask.h"

namespace tprof::launch {

// Runs `command` with `settings` added to the environment, passes on to it the signals that come
// to us, and returns its wait status.
int run_child(const std::vector<std::string>& command, const doctor::Settings& settings);

// Exits as the command did: with its exit code, or by the same signal.
[[noreturn]] void exit_like(int wait_status);

// Makes a write of ours past RLIMIT_FSIZE fail, with a message, instead of ending us by SIGXFSZ.
// Must not be called before a command is started, which would inherit it.
void let_writes_fail();

}  // namespace tprof::launch
