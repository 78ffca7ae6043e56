// Finds which processes belong to one job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "read/load.h"

namespace tprof::job {

// The label of a job without a run id.
inline constexpr const char* kUnnamed = "unnamed";

struct Job {
  std::string label;                            // unique among the jobs read
  std::string run_id;                           // empty: none
  std::vector<const read::Process*> processes;  // by rank; processes without a rank last
  std::vector<std::int64_t> ranks;              // of its processes, ascending, each once
  // Ranks below the world size without a process; none if some were left out on purpose.
  std::vector<std::int64_t> missing;
  bool part = false;        // some were left out
  bool some_calls = false;  // lines of other calls were left out when its trace was merged
  std::string only;         // the filters of the merge that wrote its trace; empty: none
  std::optional<std::int64_t> world_size;
  // Set if several processes with communicators have the same rank: groups with their own ranks,
  // joined by a communicator (a trainer and its rollout engine). Else empty.
  std::vector<std::vector<const read::Process*>> groups;
  std::int64_t from_ns = INT64_MAX;  // CLOCK_REALTIME of the first call
  std::int64_t until_ns = 0;         // its last sign of life; INT64_MAX: it runs
  bool assumed = false;              // only the folder connects its processes
  int attempt = 1;                   // 1 + the attempts of its run that had ended before
  bool restarted = false;            // restarted by its launcher
  std::string beside;                // a sentence about other jobs that were found; empty: none
};

// The setting by which no call gets a line, such as "TPROF_EVENTS=off"; empty: some may get one.
std::string_view no_lines_by(const Job& job);

// Divides processes into jobs. Shared communicator ids connect the processes of a job, and so does
// a parent that started another process of its rank. The others are joined by rendezvous, by
// launcher, and by run id or folder, in this order, if ranks and times allow it: a script may train
// twice, or beside another. Returns jobs in the order of their first call. Throws BadInput if two
// files hold the same process.
std::vector<Job> jobs_of(const std::vector<const read::Process*>& processes);

// Unifies the id of a communicator that its ranks know by two. After ncclCommGrow, the parent's
// ranks name the new communicator after the parent, new ranks after their unique id, and the root
// knows both. All get the root's id, and so do children created since.
void join_ids(std::vector<read::Trace>& traces);

}  // namespace tprof::job
