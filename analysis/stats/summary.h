// What `tprof summary` says of a job, before it is text or JSON.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/problems.h"
#include "job/jobs.h"
#include "read/folder.h"
#include "stats/totals.h"

namespace tprof::report {

// A communicator as all its ranks together saw it.
struct CommSummary {
  std::string id;
  std::string name;    // empty: none
  std::string parent;  // id, empty: none
  std::int64_t nranks = 0;
  std::vector<std::int64_t> ranks;  // of the world, as far as they were seen
  std::uint64_t collectives = 0;    // issued by one rank (the most)
  read::Amounts amounts;
};

struct Summary {
  const match::Job* job = nullptr;
  stats::Buckets buckets{};
  std::map<std::int64_t, stats::Buckets> per_rank;
  std::optional<read::Amounts>
      object_gathers;  // nothing: event lines were not read, or not all are there
  stats::Ops ops;
  std::vector<CommSummary> comms;
  std::uint64_t dropped = 0;
  bool complete = true;
  std::vector<diagnose::Problem> problems;
};

struct SummaryOptions {
  bool read_lines = false;  // for what only event lines tell
  bool whole_job = true;    // ranks that are not there are missing
};

Summary summarise(const match::Job& job, const read::Traces& traces, const SummaryOptions& options);

enum class By { size, op, comm, dtype };

struct TextOptions {
  By by = By::size;
  bool per_rank = false;
  std::string next;  // the command to run now
};
std::string to_text(const Summary& summary, const TextOptions& options);
std::string to_json(const Summary& summary);

}  // namespace tprof::report
