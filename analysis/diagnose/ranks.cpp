// Checks which ranks there are: missing ones, ones that two processes claim, and other jobs beside
// this one.
#include <fmt/format.h>

#include <map>
#include <set>

#include "diagnose/diagnosis.h"
#include "diagnose/names.h"
#include "text/text.h"

namespace tprof::diagnose {
namespace {

using read::Process;

constexpr Kind kMissingRank{"missing_rank", Severity::error};
constexpr Kind kMissingMember{"missing_member", Severity::warning};
constexpr Kind kDuplicateRank{"duplicate_rank", Severity::error};
constexpr Kind kOtherRun{"other_run", Severity::note};
constexpr Kind kAssumed{"assumed_job", Severity::warning};
constexpr Kind kSkipped{"skipped", Severity::note};
constexpr Kind kUnreadable{"unreadable", Severity::error};

void missing_ranks(const Case& c, Findings& found) {
  const auto& missing = c.job.missing;
  if (missing.empty() || !c.options.whole_job) return;
  add(found, kMissingRank, {},
      fmt::format("{} of {} ranks have no trace: {}", missing.size(), *c.job.world_size,
                  text::ranges(missing)),
      "if they ran on other hosts, bring their rank files into one folder")
      .ranks = missing;
}

// If the world size does not tell who is missing, a communicator may.
void missing_members(const Case& c, Findings& found) {
  for (const Process* p : c.job.processes) {
    if (p->end == read::End::lost) return;  // its communicators may not all have been written
  }
  for (const Communicator& comm : c.communicators) {
    std::set<std::int64_t> members;
    for (const Member& m : comm.members) members.insert(m.comm->rank);
    if (comm.nranks <= static_cast<std::int64_t>(members.size())) continue;
    const Processes processes = processes_of(comm.members);
    add(found, kMissingMember, processes,
        fmt::format("communicator {} has {} ranks, of which {} have a trace here ({})", comm.id,
                    comm.nranks, members.size(), names_of(processes)),
        "if the others ran on other hosts, bring their rank files into one folder; if they ran "
        "here, tprof could not see their calls: see tprof doctor")
        .communicator = comm.id;
  }
}

void duplicate_ranks(const Case& c, Findings& found) {
  std::map<std::int64_t, Processes> holders;
  for (const Process* p : c.job.processes) {
    if (p->header.rank && !p->comms.empty()) holders[*p->header.rank].push_back(p);
  }
  for (const auto& [rank, processes] : holders) {
    if (processes.size() < 2) continue;
    add(found, kDuplicateRank, processes,
        fmt::format("rank {} is claimed by {} processes of one job: {} and {}", rank,
                    processes.size(), processes[0]->file, processes[1]->file),
        "check the RANK variable of the launcher; the totals hold all of them");
  }
}

void other_runs(const Case& c, Findings& found) {
  if (c.job.beside.empty()) return;
  add(found, kOtherRun, {}, c.job.beside, "--run ID and --attempt N show another");
}

void assumed_job(const Case& c, Findings& found) {
  if (!c.job.assumed) return;
  add(found, kAssumed, c.job.processes,
      "nothing but the folder connects these processes: no run id, no shared communicator",
      "set TPROF_RUN_ID, or start the job with tprof run");
}

void skipped_files(const Case& c, Findings& found) {
  for (const read::Skipped& s : c.skipped) {
    add(found, s.unreadable ? kUnreadable : kSkipped, {}, s.reason);
  }
}

}  // namespace

extern const Diagnosis kMissingRanks{kCheck | kSummary, missing_ranks};
extern const Diagnosis kMissingMembers{kCheck, missing_members};
extern const Diagnosis kDuplicateRanks{kCheck | kSummary, duplicate_ranks};
extern const Diagnosis kOtherRuns{kCheck | kSummary | kDoctor, other_runs};
extern const Diagnosis kAssumedJob{kCheck | kSummary, assumed_job};
extern const Diagnosis kSkippedFiles{kCheck | kSummary | kDoctor, skipped_files};

}  // namespace tprof::diagnose
