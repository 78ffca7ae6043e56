#include "diagnose/completeness.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <set>

#include "diagnose/names.h"
#include "stats/totals.h"
#include "text/text.h"

namespace tprof::diagnose {
namespace {

using read::End;
using read::Process;

template <typename Keep>
std::vector<const Process*> pick(const match::Job& job, const Keep& keep) {
  std::vector<const Process*> picked;
  std::ranges::copy_if(job.processes, std::back_inserter(picked),
                       [&](const Process* p) { return keep(*p); });
  return picked;
}

Problem problem(std::string kind, Severity severity, std::vector<std::int64_t> ranks,
                std::string text, std::string next) {
  return {.kind = std::move(kind),
          .severity = severity,
          .ranks = std::move(ranks),
          .text = std::move(text),
          .next = std::move(next)};
}

Problem lost(const std::vector<const Process*>& processes) {
  const bool one = processes.size() == 1;
  const bool cut = one && processes[0]->cut;
  std::string known;
  std::size_t without = 0;
  std::int64_t first = INT64_MAX;
  std::int64_t last = INT64_MIN;
  for (const Process* p : processes) {
    if (p->ledgers.empty()) {
      ++without;
      continue;
    }
    first = std::min(first, known_until_ns(*p));
    last = std::max(last, known_until_ns(*p));
  }
  if (without < processes.size()) {
    known = fmt::format("; {} counts are exact until {} and unknown after", one ? "its" : "their",
                        first == last ? utc(first) : "between " + utc(first) + " and " + utc(last));
  }
  if (without != 0) {
    known += fmt::format("; {}no ledger was written, so {} counts are not known",
                         one ? "" : fmt::format("of {} of them ", report::thousands(without)),
                         one ? "its" : "their");
  }
  return problem("lost", Severity::error, ranks_of(processes),
                 names_of(processes) +
                     (cut ? ": the file ends within a line and" : " did not close:") +
                     " there is no ring file" + known,
                 "");
}

// A process that lives renews its snapshot every minute, and every ten seconds while it calls.
Problem snapshots(const std::vector<const Process*>& processes) {
  constexpr std::int64_t kMayLiveNs = 120'000'000'000;
  std::int64_t first = INT64_MAX;
  std::int64_t last = INT64_MIN;
  for (const Process* p : processes) {
    first = std::min(first, known_until_ns(*p));
    last = std::max(last, known_until_ns(*p));
  }
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const bool fresh = (std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec) - first < kMayLiveNs;
  const bool one = processes.size() == 1;
  return problem(
      "snapshot", fresh ? Severity::note : Severity::warning, ranks_of(processes),
      fmt::format("{} did not close, and {} not to be seen from here: known from {} until {}; "
                  "whether {} is not known",
                  names_of(processes), one ? "its ring file is" : "their ring files are",
                  one ? "a snapshot" : "snapshots",
                  first == last ? utc(first) : "between " + utc(first) + " and " + utc(last),
                  one ? "it runs" : "they run"),
      fresh ? "" : "tprof recover on the host that it ran on, or with --force from the snapshot");
}

// One finding of all rows in which `count` is not 0, by name.
template <typename Count>
void each_name(const match::Job& job, const Count& count, const char* kind, const char* what,
               std::vector<Problem>& found) {
  std::map<std::string, std::uint64_t> names;
  const auto processes = pick(job, [&](const Process& p) {
    std::uint64_t n = 0;
    for (const auto& [epoch, ledger] : p.ledgers) {
      for (const read::Row& row : ledger.rows) {
        if (count(row.amounts) == 0) continue;
        names[row.name] += count(row.amounts);
        n += count(row.amounts);
      }
    }
    return n != 0;
  });
  if (processes.empty()) return;
  std::string list;
  for (const auto& [name, n] : names) {
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", report::thousands(n), name);
  }
  found.push_back(problem(kind, Severity::warning, ranks_of(processes),
                          fmt::format("{}: {} ({})", names_of(processes), what, list), ""));
}

}  // namespace

std::int64_t known_until_ns(const Process& process) {
  const std::int64_t ts = process.ledgers.empty() ? 0 : process.ledgers.rbegin()->second.ts_ns;
  return process.header.base_time_ns + ts;
}

std::string unknown_since(const std::vector<const Process*>& snapshots) {
  std::int64_t first = INT64_MAX;
  for (const Process* p : snapshots) first = std::min(first, known_until_ns(*p));
  return fmt::format(
      "what {} did after {} is not known", names_of(snapshots),
      snapshots.size() == 1 ? utc(first) : "their snapshots (the oldest is of " + utc(first) + ")");
}

bool complete(const match::Job& job, const std::vector<Problem>& problems) {
  const bool known = std::ranges::all_of(job.processes, [](const Process* p) {
    return p->end == End::closed || p->end == End::recovered;
  });
  const bool error = std::ranges::any_of(problems, [](const Problem& p) {
    return (p.severity == Severity::error && p.kind != kMismatch) ||
           (p.severity == Severity::warning && p.kind == "not_closed");
  });
  return known && !error;
}

void missing_ranks(const match::Job& job, std::vector<Problem>& found) {
  if (job.missing.empty()) return;
  found.push_back(problem("missing_rank", Severity::error, job.missing,
                          fmt::format("{} of {} ranks have no trace: {}", job.missing.size(),
                                      *job.world_size, report::ranges(job.missing)),
                          "if they ran on other hosts, bring their rank files into one folder"));
}

// Where the world size does not tell who is missing, a communicator may.
void missing_members(const match::Job& job, std::vector<Problem>& found) {
  if (!job.missing.empty()) return;
  struct Seen {
    std::int64_t nranks = 0;
    std::set<std::int64_t> members;
    std::vector<const Process*> processes;
  };
  std::map<std::string, Seen> communicators;
  for (const Process* p : job.processes) {
    if (p->end == End::lost) return;  // its communicators may not all have been written
    for (const auto& [number, comm] : p->comms) {
      if (!comm.known()) continue;
      Seen& seen = communicators[comm.id];
      seen.nranks = std::max(seen.nranks, comm.nranks);
      seen.members.insert(comm.rank);
      seen.processes.push_back(p);
    }
  }
  for (const auto& [id, seen] : communicators) {
    if (seen.nranks <= static_cast<std::int64_t>(seen.members.size())) continue;
    found.push_back(problem(
        "missing_member", Severity::warning, ranks_of(seen.processes),
        fmt::format("communicator {} has {} ranks, of which {} have a trace here ({})", id,
                    seen.nranks, seen.members.size(), names_of(seen.processes)),
        "if the others ran on other hosts, bring their rank files into one folder; if they ran "
        "here, tprof could not see their calls: see tprof doctor"));
    found.back().communicator = id;
  }
}

void contested_ranks(const match::Job& job, std::vector<Problem>& found) {
  std::map<std::int64_t, std::vector<const Process*>> holders;
  for (const Process* p : job.processes) {
    if (p->header.rank && !p->comms.empty()) holders[*p->header.rank].push_back(p);
  }
  for (const auto& [rank, processes] : holders) {
    if (processes.size() < 2) continue;
    found.push_back(
        problem("duplicate_rank", Severity::error, {rank},
                fmt::format("rank {} is claimed by {} processes of one job: {} and {}", rank,
                            processes.size(), processes[0]->file, processes[1]->file),
                "check the RANK variable of the launcher; the totals hold all of them"));
  }
}

void other_jobs(const match::Job& job, std::vector<Problem>& found) {
  if (job.beside.empty()) return;
  found.push_back(problem("other_run", Severity::note, {}, job.beside,
                          "--run ID and --attempt N show another"));
}

void assumed_job(const match::Job& job, std::vector<Problem>& found) {
  if (!job.assumed) return;
  found.push_back(
      problem("assumed_job", Severity::warning, job.ranks,
              "nothing but the folder connects these processes: no run id, no shared communicator",
              "set TPROF_RUN_ID, or start the job with tprof run"));
}

namespace {

bool has_unfinished(const Process& p) {
  return std::ranges::any_of(p.ledgers, [](const auto& epoch) {
    return std::ranges::any_of(epoch.second.rows,
                               [](const read::Row& row) { return row.amounts.unfinished != 0; });
  });
}

// Whether nothing shows that anybody was left in the middle: no call was open, and the members of a
// communicator did as many collectives and ended alike. So do jobs whose launcher ends idle ranks.
bool all_were_idle(const match::Job& job) {
  struct Members {
    End end;
    std::uint64_t done;
  };
  std::map<std::string_view, Members> seen;
  for (const Process* p : job.processes) {
    if (has_unfinished(*p)) return false;
    for (const auto& [number, comm] : p->comms) {
      std::uint64_t done = 0;
      for (const auto& [epoch, ledger] : p->ledgers) {
        for (const read::Collectives& c : ledger.collectives) {
          if (c.comm == number) done += c.count;
        }
      }
      const auto [first, fresh] = seen.try_emplace(comm.id, Members{p->end, done});
      if (first->second.end != p->end || first->second.done != done) return false;
    }
  }
  return true;
}

}  // namespace

void not_closed(const match::Job& job, std::vector<Problem>& found) {
  const auto running =
      pick(job, [](const Process& p) { return p.end == End::running && !p.snapshot; });
  const auto seen = pick(job, [](const Process& p) { return p.snapshot; });
  if (!seen.empty()) found.push_back(snapshots(seen));
  if (!running.empty()) {
    found.push_back(problem("running", Severity::note, ranks_of(running),
                            names_of(running) + (running.size() == 1 ? " is" : " are") +
                                " still running: the counts are as of now",
                            ""));
  }
  const bool idle = all_were_idle(job);
  const auto may_be_well = [&](const Process& p) {
    return !has_unfinished(p) && (idle || p.comms.empty());
  };
  const auto ended =
      pick(job, [&](const Process& p) { return p.end == End::recovered && may_be_well(p); });
  if (!ended.empty()) {
    found.push_back(problem(
        "not_closed", Severity::note, ranks_of(ended),
        names_of(ended) + " ended without closing: killed by a signal, or a way of ending "
                          "that tprof does not see; no call was open, and the counts are exact",
        ""));
  }
  const auto recovered =
      pick(job, [&](const Process& p) { return p.end == End::recovered && !may_be_well(p); });
  if (!recovered.empty()) {
    found.push_back(problem(
        "not_closed", Severity::warning, ranks_of(recovered),
        names_of(recovered) +
            " did not close (killed or crashed): the counts are exact, recovered from the ring "
            "file",
        ""));
  }
  const auto partial = pick(job, [](const Process& p) { return p.end == End::partial; });
  if (!partial.empty()) {
    found.push_back(problem(
        "partial", Severity::error, ranks_of(partial),
        names_of(partial) + " did not close, and not all counts fitted into the ring file (disk "
                            "full, less than 1 GiB "
                            "left in /dev/shm, or a file size limit): the counts are lower bounds",
        "free space where the ring file was, or raise ulimit -f"));
  }
  const auto gone = pick(job, [](const Process& p) { return p.end == End::lost; });
  if (!gone.empty()) found.push_back(lost(gone));
}

namespace {

// By reason, and who.
struct Drops {
  std::map<std::string, std::uint64_t> reasons;
  std::vector<const Process*> processes;
  std::uint64_t all = 0;

  std::string why() const {
    std::string text;
    for (const auto& [reason, n] : reasons) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", reason, report::thousands(n));
    }
    return text;
  }
};

using Counts = std::map<std::string, std::uint64_t>;
Drops drops_of(const match::Job& job, Counts read::Footer::*counts) {
  Drops drops;
  drops.processes = pick(job, [&](const Process& p) {
    if (!p.footer) return false;
    std::uint64_t n = 0;
    for (const auto& [reason, lines] : (*p.footer).*counts) {
      if (p.lane == 0) drops.reasons[reason] += lines;  // the process's
      n += lines;
    }
    return n != 0;
  });
  for (const auto& [reason, n] : drops.reasons) drops.all += n;
  return drops;
}

void dropped_events(const match::Job& job, std::vector<Problem>& found) {
  const Drops drops = drops_of(job, &read::Footer::dropped);
  if (drops.processes.empty()) return;
  const auto& reasons = drops.reasons;
  // Nobody asked for these; the others are settings at work.
  const bool lost = reasons.contains("ring") || reasons.contains("write_error");
  const char* next = reasons.contains("write_error") ? "free space in TPROF_OUTPUT_DIR"
                     : reasons.contains("ring")
                         ? "raise TPROF_RING"
                         : "raise TPROF_QUOTA, or write lines of fewer ranks with TPROF_RANKS";
  found.push_back(
      problem("dropped", lost ? Severity::warning : Severity::note, ranks_of(drops.processes),
              fmt::format("{} events of {} have no line in the timeline ({}); the counts hold them",
                          report::thousands(drops.all), names_of(drops.processes), drops.why()),
              lost || reasons.contains("quota") ? next : ""));
}

// They are no counts: whatever the reason, nothing is wrong with the trace.
void dropped_ranges(const match::Job& job, std::vector<Problem>& found) {
  const Drops drops = drops_of(job, &read::Footer::ranges_dropped);
  if (drops.processes.empty()) return;
  found.push_back(problem(
      "dropped_ranges", Severity::note, ranks_of(drops.processes),
      fmt::format("{} NVTX ranges of {} have no line in the timeline ({})",
                  report::thousands(drops.all), names_of(drops.processes), drops.why()),
      drops.reasons.contains("quota")
          ? "raise TPROF_QUOTA: ranges have a quarter as much for themselves"
      : drops.reasons.contains("ring") ? "raise TPROF_RING: ranges leave half of it to calls"
                                       : ""));
}

}  // namespace

void dropped(const match::Job& job, std::vector<Problem>& found) {
  dropped_events(job, found);
  dropped_ranges(job, found);
}

void failed_calls(const match::Job& job, std::vector<Problem>& found) {
  each_name(
      job, [](const read::Amounts& a) { return a.failed; }, "failed",
      "calls were refused or only simulated, alone or with their group", found);
}

void unfinished_calls(const match::Job& job, std::vector<Problem>& found) {
  each_name(
      job, [](const read::Amounts& a) { return a.unfinished; }, "unfinished",
      "calls never returned", found);
}

void overflows(const match::Job& job, std::vector<Problem>& found) {
  read::Amounts all;
  for (const Process* p : job.processes) all += stats::sum(stats::bucket_totals(*p));
  if (!all.saturated()) return;
  found.push_back(problem("overflow", Severity::error, job.ranks,
                          "a total is larger than 64 bits can hold: what is given as " +
                              report::thousands(read::kSaturated) + " is a lower bound",
                          "if that can't be, a rank file is damaged: the figures of each rank are "
                          "in summary --per-rank"));
}

void skipped_files(const std::vector<read::Skipped>& skipped, std::vector<Problem>& found) {
  for (const read::Skipped& s : skipped) {
    found.push_back(problem(s.unreadable ? "unreadable" : "skipped",
                            s.unreadable ? Severity::error : Severity::note, {}, s.reason, ""));
  }
}

}  // namespace tprof::diagnose
