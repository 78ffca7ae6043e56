// Defines a diagnosis and its inputs: the calls that meet by their numbers (channels.h), where each
// rank stands and whom it waits for (waits.h), and how processes and devices end (ends.h). To add
// one, define it in a file of its own and add a row to kinds.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "check/agreement.h"
#include "check/arrivals.h"
#include "check/channels.h"
#include "check/devices.h"
#include "check/finding.h"
#include "filter/filter.h"
#include "job/jobs.h"
#include "read/folder.h"

namespace tprof::check {

// The command that asks; the values are bits. kWhole: one that shows calls, and asks whether they
// are all there. kStands is of diagnoses alone: they take the ranks' calls to be known until the
// same moment, so dumps of a job that ran tell them nothing.
enum Asked : unsigned { kCheck = 1, kSummary = 2, kDoctor = 4, kWhole = 8, kStands = 16 };

struct Options {
  Asked asked = kCheck;
  bool whole_job = true;                         // report ranks without a trace as missing
  const filter::Calls* comms = nullptr;          // only these; null: all
  bool read_lines = true;                        // else only the ledgers are used
  std::int64_t stuck_after_ns = 30'000'000'000;  // for a process that still runs
};

// A process is this member of a communicator of the job.
struct Membership {
  std::size_t communicator = 0;
  const Member* member = nullptr;
};

// The job that is looked at, and what was read of it.
struct Case {
  const job::Job& job;
  const read::Traces& traces;
  const Options& options;
  run::ByRank<RankCalls> lines{};              // empty if lines are not read
  std::shared_ptr<const Arrivals> arrivals{};  // null if lines are not read
  std::vector<read::Skipped> skipped{};        // files that are not looked at
  std::vector<Communicator> communicators{};
  // By the process and its number of the communicator.
  std::map<std::pair<const read::Process*, std::int64_t>, Membership> memberships{};
  std::vector<Agreement> agreements{};  // one per communicator
  std::vector<Channel> channels{};
  std::optional<Contradiction> dumped_while_running{};
  const run::Lines* read = nullptr;  // null if lines are not read

  // Null: it is in none that is looked at.
  const Membership* membership(const read::Process& rank, std::int64_t comm) const {
    const auto in = memberships.find({&rank, comm});
    return in == memberships.end() ? nullptr : &in->second;
  }
  // Nothing where the rank's lines are not, or can't be, read.
  const RankCalls& calls(const read::Process& rank) const;
  bool has_lines(const read::Process& rank) const { return lines.of<RankCalls>(&rank) != nullptr; }
  // Null: they are not, or not this rank's.
  const run::Said* said(const read::Process& rank) const {
    return read == nullptr ? nullptr : read->said(rank);
  }
  // Shows the rank's lines to a struct that run/lines.h describes, and returns it.
  template <typename Made>
  Made shown(const read::Process& rank, Made made) const {
    job::Job alone;
    alone.processes = {&rank};
    const auto make = [&](const read::Process&) { return made; };
    if (read != nullptr) read->of(alone).each(make, [&](Made& saw) { made = std::move(saw); });
    return made;
  }
};

struct Diagnosis {
  unsigned asked;  // bits of the commands that run it
  // Appends its findings to those of the diagnoses before it.
  void (*reduce)(const Case&, Findings&);
};

// Folds each effect into its cause, or drops it, and leads with the ranks that ended first.
void explain(const Case& c, Findings& findings);

}  // namespace tprof::check
