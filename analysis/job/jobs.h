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
  // Where several processes with communicators have one rank: groups with ranks of their own, which
  // a communicator joins (a trainer and its rollout engine). Else empty.
  std::vector<std::vector<const read::Process*>> groups;
  std::int64_t from_ns = INT64_MAX;  // CLOCK_REALTIME of the first call
  std::int64_t until_ns = 0;         // and when it was last heard of; INT64_MAX: it runs
  bool assumed = false;              // nothing but the folder connects its processes
  int attempt = 1;         // 1 + those of its run before it, each of which had ended by then
  bool restarted = false;  // its launcher started it again
  std::string beside;      // what else was found and is left aside, in a sentence; empty: nothing
};

// Divides processes into jobs. Shared communicator ids connect those of one job, and so does a
// parent that started another process for its own rank. The others are put together by where ranks
// meet, by who started whom, and by run id or folder, in this order, as long as ranks and times
// allow it: a script may train twice, or beside another. Returns jobs in the order of
// their first call. Throws BadInput if two files hold the same process.
std::vector<Job> jobs_of(const std::vector<const read::Process*>& processes);

// Gives one id to a communicator that its ranks know by two. After ncclCommGrow, ranks of the
// parent name the new communicator after the parent. New ranks name it after the unique id that
// they got, and the root says that both are one. All get the root's, and so do the children made of
// it since.
void join_ids(std::vector<read::Trace>& traces);

}  // namespace tprof::job
