// Checks which ranks there are: missing ranks, ranks that two processes claim, groups that number
// their own ranks, and other jobs in the folder.
#include <map>
#include <set>

#include "check/diagnosis.h"
#include "check/names.h"

namespace tprof::check {
namespace {

using read::Process;

void missing_ranks(const Case& c, Findings& found) {
  const auto& missing = c.job.missing;
  if (missing.empty()) return;
  const text::Ranks ranks(missing);
  std::vector<std::int64_t> left;  // of a file, at least
  for (const read::Skipped& s : c.skipped) {
    if (s.rank && ranks.contains(*s.rank)) left.push_back(*s.rank);
  }
  const bool all = left.size() == missing.size();
  add(found, Kind::missing_rank, {},
      {{"missing", missing.size()},
       {"world_size", c.job.world_size},
       {"ranks", ranks},
       {"left", left.empty() ? std::nullopt : std::optional(text::Ranks(left))},
       {"all_left", all}})
      .ranks = ranks;
}

// A communicator may show missing ranks that the world size does not.
void missing_members(const Case& c, Findings& found) {
  if (c.job.part) return;
  for (const Process* p : c.job.processes) {
    if (p->end == read::End::lost) return;  // some of its communicators may not have been written
  }
  // If ranks are stuck in the call that creates it, or were refused, another finding says so.
  std::set<std::string> not_made;
  for (const Process* p : c.job.processes) {
    const auto& calls = c.calls(*p);
    for (const auto* some : {&calls.open_life, &calls.failed_life}) {
      for (const read::LifeCall& call : *some) not_made.insert(call.id);
    }
  }
  for (const Communicator& comm : c.communicators) {
    if (not_made.contains(comm.id)) continue;
    std::set<std::int64_t> members;
    for (const Member& m : comm.members) members.insert(m.comm->rank);
    if (comm.nranks <= static_cast<std::int64_t>(members.size())) continue;
    add(found, Kind::missing_member, processes_of(comm.members),
        {{"communicator", comm.id}, {"nranks", comm.nranks}, {"seen", members.size()}})
        .communicator = comm.id;
  }
}

// A communicator has each rank once.
void duplicate_ranks(const Case& c, Findings& found) {
  std::set<const Process*> said;
  for (const Communicator& comm : c.communicators) {
    const Member* before = nullptr;
    for (const Member& m : comm.members) {
      const bool again = before != nullptr && before->comm->rank == m.comm->rank;
      if (again && before->process != m.process && said.insert(m.process).second) {
        add(found, Kind::duplicate_rank, {before->process, m.process},
            {{"rank", m.rank()}, {"file", before->process->file}, {"other", m.process->file}});
      }
      before = &m;
    }
  }
}

void rank_groups(const Case& c, Findings& found) {
  if (c.job.groups.empty()) return;
  constexpr std::size_t kShown = 4;
  Facts list;
  for (const Processes& group : c.job.groups) {
    list.push_back({Say::rank_group,
                    {{"who", group},
                     {"command", group.front()->header.command},
                     {"host", group.front()->header.host}}});
  }
  shorten(list, kShown);
  add(found, Kind::rank_groups, {}, {{"groups", c.job.groups.size()}, {"list", list}});
}

// The largest size counts, so more ranks may be missing than expected. Ranks joined by ncclCommGrow
// were started with different sizes, and nothing is wrong.
void world_sizes(const Case& c, Findings& found) {
  if (!c.job.groups.empty()) return;  // each group has its own size
  std::map<std::int64_t, Processes> told;
  for (const Process* p : c.job.processes) {
    if (p->lanes > 1) return;  // a launcher may have counted processes
    if (p->header.rank && p->header.world_size && !p->comms.empty()) {
      told[*p->header.world_size].push_back(p);
    }
  }
  if (told.size() < 2) return;
  for (const auto& [size, processes] : told) {
    for (const Process* p : processes) {
      for (const auto& [number, comm] : p->comms) {
        if (comm.nranks > size) return;
      }
    }
  }
  Facts list;
  for (const auto& [size, processes] : told) {
    list.push_back({Say::value_on, {{"value", std::to_string(size)}, {"who", processes}}});
  }
  add(found, Kind::world_sizes_differ, {}, {{"sizes", list}, {"taken", c.job.world_size}});
}

void other_runs(const Case& c, Findings& found) {
  if (c.job.beside.empty()) return;
  add(found, Kind::other_run, {}, {{"beside", c.job.beside}});
}

void assumed_job(const Case& c, Findings& found) {
  if (!c.job.assumed) return;
  add(found, Kind::assumed_job, c.job.processes);
}

void skipped_files(const Case& c, Findings& found) {
  for (const read::Skipped& s : c.skipped) {
    add(found, s.unreadable ? Kind::unreadable : Kind::skipped, {}, {{"reason", s.reason}});
  }
}

}  // namespace

extern const Diagnosis kMissingRanks{kCheck | kSummary | kWhole | kDoctor, missing_ranks};
extern const Diagnosis kMissingMembers{kCheck, missing_members};
extern const Diagnosis kDuplicateRanks{kCheck | kSummary | kWhole, duplicate_ranks};
extern const Diagnosis kRankGroups{kCheck | kSummary | kWhole, rank_groups};
extern const Diagnosis kWorldSizes{kCheck | kSummary | kWhole, world_sizes};
extern const Diagnosis kOtherRuns{kCheck | kSummary | kWhole | kDoctor, other_runs};
extern const Diagnosis kAssumedJob{kCheck | kSummary | kWhole, assumed_job};
extern const Diagnosis kSkippedFiles{kCheck | kSummary | kWhole | kDoctor, skipped_files};

}  // namespace tprof::check
