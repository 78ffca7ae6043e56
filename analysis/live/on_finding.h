// A command of the user's, run for a finding.
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "diagnose/finding.h"
#include "job/jobs.h"

namespace tprof::live {

// A process of a finding that runs on this machine.
struct Target {
  std::int64_t rank = 0;
  std::int64_t pid = 0;
};
std::vector<Target> targets_of(const diagnose::Finding& finding, const job::Job& job);

// Whether the process was started by that one, or by a child of it, and so on.
bool descends_from(std::int64_t pid, std::int64_t ancestor);

// A finding, and those of its processes that the command is for.
struct ToTell {
  const diagnose::Finding* finding;
  std::vector<Target> targets;
};

// By the shell, with the signals of `mask`: once, with these findings on its standard input, one a
// line (see the contract); or, where {pid} or {rank} stands in it, once for each target, with these
// replaced and its finding. Waits for it. False: there was no target, so it was not run.
bool run_for(const std::string& command, const std::vector<ToTell>& findings, const sigset_t& mask);

}  // namespace tprof::live
