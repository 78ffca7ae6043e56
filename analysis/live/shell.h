// A command of the user's, run by the shell.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <string>

namespace tprof::live {

// The process group that it is in. In its own a Ctrl-C that ends the job does not reach it.
enum class Group { ours, own };

// Starts it with `input` for its standard input and with the signals of `mask`. Its pid; -1, with
// errno: it can't be started.
pid_t start_in_shell(const std::string& command, int input, const sigset_t& mask, Group group);

// "exited with 3", "was ended by signal 9"
std::string how_it_ended(int wait_status);

}  // namespace tprof::live
