// Runs a command of the user's with the shell.
#pragma once

#include <csignal>
#include <string>
#include <string_view>

#include "children/child.h"

namespace tprof::live {

// The process group of the command. A Ctrl-C that ends the job does not reach a group of its own.
enum class Group { ours, own };

// Starts the command with `input` for its standard input and with the signal mask `mask`. Throws
// std::runtime_error.
children::Child start_in_shell(const std::string& command, int input, const sigset_t& mask,
                               Group group);
// Starts it, waits for it, and returns its wait status.
int run_in_shell(const std::string& command, int input, const sigset_t& mask, Group group);

// Returns the command with every `placeholder` replaced.
std::string filled_in(std::string command, std::string_view placeholder, std::string_view by);

// Returns "exited with 3" or "was ended by signal 9 (Killed)".
std::string how_it_ended(int wait_status);

}  // namespace tprof::live
