// Runs a command of the user's for a finding.
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "check/finding.h"
#include "job/jobs.h"

namespace tprof::live {

// A process of a finding that runs on this machine.
struct Target {
  std::int64_t rank = 0;
  std::int64_t pid = 0;
};
std::vector<Target> targets_of(const check::Finding& finding, const job::Job& job);

// True if the process was started by that one, or by a child of it, and so on.
bool descends_from(std::int64_t pid, std::int64_t ancestor);

// A finding, and those of its processes that the command is for.
struct ToTell {
  const check::Finding* finding;
  std::vector<Target> targets;
};

// Runs the command with the shell and the signal mask `mask`, and waits for it. It runs once, with
// these findings on its standard input, one a line (see the contract). If it has {pid} or {rank} in
// it, it runs once for each target, with these replaced and the target's finding. Returns false if
// there was no target, so that it was not run.
bool run_for(const std::string& command, const std::vector<ToTell>& findings, const sigset_t& mask);

}  // namespace tprof::live
