// Runs a command of the user's with the shell.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <string>

namespace tprof::live {

// The process group of the command. A Ctrl-C that ends the job does not reach a group of its own.
enum class Group { ours, own };

// Starts the command with `input` for its standard input and with the signal mask `mask`. Returns
// its pid, or -1 and errno if it can't be started.
pid_t start_in_shell(const std::string& command, int input, const sigset_t& mask, Group group);

// Returns "exited with 3" or "was ended by signal 9".
std::string how_it_ended(int wait_status);

}  // namespace tprof::live
