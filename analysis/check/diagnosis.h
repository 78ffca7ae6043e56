// A diagnosis and its inputs: matched calls (channels.h), where each rank stands and whom it waits
// for (waits.h), and how processes and devices end (ends.h). To add one, define it in its own file
// and add a row to kinds.h.
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

// The command that asks, as bits. kWhole: it shows calls, and needs to know whether all are there.
// kStands is set by diagnoses only: they need the calls of most ranks until the same moment, so
// dumps of a running job are useless to them.
enum Asked : unsigned { kCheck = 1, kSummary = 2, kDoctor = 4, kWhole = 8, kStands = 16 };

struct Options {
  Asked asked = kCheck;
  const filter::Calls* comms = nullptr;          // only these; null: all
  bool read_lines = true;                        // else only the ledgers are used
  std::int64_t stuck_after_ns = 30'000'000'000;  // for a process that still runs
};

// A process's membership in a communicator of the job.
struct Membership {
  std::size_t communicator = 0;
  const Member* member = nullptr;
};

// The job under diagnosis, and what was read of it.
struct Case {
  const job::Job& job;
  const read::Traces& traces;
  const Options& options;
  run::ByRank<RankCalls> lines{};              // empty if lines are not read
  std::shared_ptr<const Arrivals> arrivals{};  // null if lines are not read
  std::vector<read::Skipped> skipped{};        // files that are left out
  std::vector<Communicator> communicators{};
  // By process and its own communicator number.
  std::map<std::pair<const read::Process*, std::int64_t>, Membership> memberships{};
  std::vector<Agreement> agreements{};  // one per communicator
  std::vector<Channel> channels{};
  OlderDumps older{};                // not comparable with the other dumps
  const run::Lines* read = nullptr;  // null if lines are not read

  // Null: the communicator is not under diagnosis.
  const Membership* membership(const read::Process& rank, std::int64_t comm) const {
    const auto in = memberships.find({&rank, comm});
    return in == memberships.end() ? nullptr : &in->second;
  }
  // Returns empty calls if the rank's lines were not read, or can't be.
  const RankCalls& calls(const read::Process& rank) const;
  bool has_lines(const read::Process& rank) const { return lines.of(&rank) != nullptr; }
  // Null: lines, or this rank's lines, were not read.
  const run::MetadataHistory* history(const read::Process& rank) const {
    return read == nullptr ? nullptr : read->history(rank);
  }
  // Shows the rank's lines to a visitor (run/lines.h) and returns it.
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
  // Appends its findings to those of earlier diagnoses.
  void (*reduce)(const Case&, Findings&);
};

// Makes each effect evidence of its cause, or drops it, and names the ranks that ended first.
void explain(const Case& c, Findings& findings);

}  // namespace tprof::check
