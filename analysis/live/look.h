// Takes one look at a job that may still run, in a folder that may still be empty.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/choice.h"
#include "read/folder.h"
#include "read/load.h"
#include "tables/totals.h"

namespace tprof::live {

struct Look {
  read::Traces traces;
  std::optional<job::Job> job;  // the job of these traces
  std::string why;              // why there is none yet

  // True if nothing more will come: every process has closed, was followed by another process of
  // its rank, or is gone along with the process that could restart it.
  bool over() const;
};

// Throws BadInput if that is no folder.
Look look_at(const std::filesystem::path& folder, const job::Choice& choice, read::Wanted wanted);

// A rank as seen in one look at a job.

// A call that has not returned.
struct OpenCall {
  std::string function;
  std::optional<Bucket> bucket;      // nullopt: it makes or ends a communicator
  std::string communicator;          // id; empty: a copy
  std::optional<std::uint64_t> seq;  // only for collectives
  std::int64_t age_ns = 0;           // as of the look
};

// The last ended step, from the rank's own writer.
struct Step {
  std::int64_t number = 0;
  std::int64_t dur_ns = 0;
};

// The known state of a process. snapshot: its ring file is not visible from here, so the counts are
// as of its snapshot. lost: it did not close, and left neither.
inline constexpr std::string_view kStates[] = {"running", "snapshot", "closed", "killed", "lost"};

struct Rank {
  const read::Process* process = nullptr;
  tables::Buckets buckets{};
  read::Amounts all{};
  std::int64_t as_of_ns = 0;  // on the process's own clock
  // CLOCK_REALTIME when its last call ended, or an open one began; nullopt if unknown.
  std::optional<std::int64_t> last_call_ns{};
  std::vector<OpenCall> open{};  // oldest first; only of a running process visible from here
  std::optional<Step> step{};

  bool runs() const { return process->end == read::End::running && !process->snapshot; }
  std::string name() const;        // "3", or "node7-4711" if it has no rank
  std::string_view state() const;  // one of kStates
  // Returns why calls have no event line; null if unknown. If a process holds several ranks, the
  // first has the numbers of all.
  const std::map<std::string, std::uint64_t>* why_dropped() const;
  std::optional<std::uint64_t> dropped() const;
};

// Returns a rank for each process of the job, in order. StepFiles sets the steps.
std::vector<Rank> ranks_of(const Look& look);

// Returns for how long no running rank has made a call; nullopt: unknown, or not long.
std::optional<std::int64_t> quiet_ns(const std::vector<Rank>& ranks);

}  // namespace tprof::live
