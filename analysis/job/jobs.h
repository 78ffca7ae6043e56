// Finds which processes belong to one job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "read/load.h"

namespace tprof::job {

// The label of a job without a run id.
inline constexpr const char* kUnnamed = "unnamed";

struct Job {
  std::string label;                            // unique among the jobs that were read together
  std::string run_id;                           // empty: none
  std::vector<const read::Process*> processes;  // by rank; those without one last
  std::vector<std::int64_t> ranks;              // of its processes, ascending, each once
  std::vector<std::int64_t> missing;            // ranks of the world size that no process holds
  std::optional<std::int64_t> world_size;
  bool assumed = false;  // nothing but the folder connects its processes
  int attempt = 1;       // among the jobs of its run id that were read together, by their start
  std::string beside;    // what else was found and is left aside, in a sentence; empty: nothing
};

// Shared communicator ids connect the processes of a job. Without them a run id (and restart count)
// does; without that, the folder. Processes that clash in rank are never put into one job by run id
// or folder alone: a script may train twice, and so may its user. Returns jobs in the order of
// their start. Throws BadInput if two files hold the same process.
std::vector<Job> jobs_of(const std::vector<const read::Process*>& processes);

// Gives one id to a communicator that its ranks know by two. After ncclCommGrow, ranks of the
// parent name the new communicator after the parent. New ranks name it after the unique id that
// they got, and the root says that both are one. All get the root's, and so do the children made of
// it since.
void join_ids(std::vector<read::Trace>& traces);

}  // namespace tprof::job
