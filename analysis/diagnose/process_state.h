// The state of a traced process as its kernel tells it, where it runs on this machine.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "diagnose/diagnosis.h"

namespace tprof::diagnose {

// Returns where a process's id is valid: its host or, if it is of another pid namespace than the
// host's and this one, its container there.
std::string place_of_pid(const read::Header& h);

// Returns a letter of proc(5); nullopt where it is not known, or the pid is another process's now.
std::optional<char> state_here(const read::Process& p, const std::filesystem::path& proc = "/proc");
// True if it is here, and a signal or a debugger has stopped it.
bool is_stopped(const read::Process& p);

// Leads with processes that are stopped, where these have made no call for long: the findings from
// `before` on, of who stands where, become evidence of that.
void lead_with_stopped(const Case& c, std::size_t before, Findings& found);

}  // namespace tprof::diagnose
