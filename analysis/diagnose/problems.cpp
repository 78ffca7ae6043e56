#include "diagnose/problems.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "report/text.h"
#include "stats/totals.h"

namespace tprof::diagnose {
namespace {

using read::End;
using read::Process;

std::string name_of(const Process& p) {
  return p.header.rank ? fmt::format("rank {}", *p.header.rank)
                       : fmt::format("pid {} on {}", p.header.pid, p.header.host);
}

std::vector<std::int64_t> ranks_of(const std::vector<const Process*>& processes) {
  std::set<std::int64_t> ranks;
  for (const Process* p : processes) {
    if (p->header.rank) ranks.insert(*p->header.rank);
  }
  return {ranks.begin(), ranks.end()};
}

// "ranks 0-3,7", with the processes that have no rank named behind.
std::string names_of(const std::vector<const Process*>& processes) {
  const auto ranks = ranks_of(processes);
  std::string names =
      ranks.empty() ? "" : (ranks.size() == 1 ? "rank " : "ranks ") + report::ranges(ranks);
  for (const Process* p : processes) {
    if (!p->header.rank) names += (names.empty() ? "" : ", ") + name_of(*p);
  }
  return names;
}

std::string utc(std::int64_t ns) {
  return fmt::format("{:%F %T}.{:03} UTC",
                     fmt::gmtime(static_cast<std::time_t>(ns / 1'000'000'000)),
                     ns / 1'000'000 % 1000);
}

template <typename Keep>
std::vector<const Process*> pick(const match::Job& job, const Keep& keep) {
  std::vector<const Process*> picked;
  std::ranges::copy_if(job.processes, std::back_inserter(picked),
                       [&](const Process* p) { return keep(*p); });
  return picked;
}

class Finder {
 public:
  Finder(const match::Job& job, std::vector<Problem>& found) : job_(job), found_(found) {}

  void missing_ranks() {
    if (job_.missing.empty()) return;
    add("missing_rank", Severity::error, job_.missing,
        fmt::format("{} of {} ranks have no trace: {}", job_.missing.size(), *job_.world_size,
                    report::ranges(job_.missing)),
        "if they ran on other hosts, bring their rank files into one folder");
  }

  void contested_ranks() {
    std::map<std::int64_t, std::vector<const Process*>> holders;
    for (const Process* p : job_.processes) {
      if (p->header.rank && !p->comms.empty()) holders[*p->header.rank].push_back(p);
    }
    for (const auto& [rank, processes] : holders) {
      if (processes.size() < 2) continue;
      add("duplicate_rank", Severity::error, {rank},
          fmt::format("rank {} is claimed by {} processes of one job: {} and {}", rank,
                      processes.size(), processes[0]->file, processes[1]->file),
          "check the RANK variable of the launcher; the totals hold all of them");
    }
  }

  void not_closed() {
    const auto running = pick(job_, [](const Process& p) { return p.end == End::running; });
    if (!running.empty()) {
      add("running", Severity::note, ranks_of(running),
          names_of(running) + (running.size() == 1 ? " is" : " are") +
              " still running: the counts are as of now",
          "");
    }
    const auto recovered = pick(job_, [](const Process& p) { return p.end == End::recovered; });
    if (!recovered.empty()) {
      add("not_closed", Severity::warning, ranks_of(recovered),
          names_of(recovered) +
              " did not close (killed or crashed): the counts are exact, recovered from the ring "
              "file",
          "");
    }
    const auto partial = pick(job_, [](const Process& p) { return p.end == End::partial; });
    if (!partial.empty()) {
      add("partial", Severity::error, ranks_of(partial),
          names_of(partial) +
              " did not close, and not all counts fitted into the ring file (disk full, or a file "
              "size limit): the counts are lower bounds",
          "free space in TPROF_OUTPUT_DIR, or raise ulimit -f");
    }
    for (const Process* p : pick(job_, [](const Process& q) { return q.end == End::lost; })) {
      lost(*p);
    }
  }

  void dropped() {
    std::map<std::string, std::uint64_t> reasons;
    const auto droppers = pick(job_, [&](const Process& p) {
      if (!p.footer) return false;
      std::uint64_t n = 0;
      for (const auto& [reason, events] : p.footer->dropped) {
        reasons[reason] += events;
        n += events;
      }
      return n != 0;
    });
    if (droppers.empty()) return;
    std::string why;
    std::uint64_t all = 0;
    for (const auto& [reason, n] : reasons) {
      why += fmt::format("{}{} {}", why.empty() ? "" : ", ", reason, report::thousands(n));
      all += n;
    }
    const bool quota = reasons.contains("quota");
    add("dropped", Severity::note, ranks_of(droppers),
        fmt::format("{} events of {} have no line in the timeline ({}); the counts hold them",
                    report::thousands(all), names_of(droppers), why),
        quota ? "raise TPROF_QUOTA, or write lines of fewer ranks with TPROF_RANKS" : "");
  }

  void failed_calls() {
    each_name([](const read::Amounts& a) { return a.failed; }, "failed", Severity::warning,
              "calls were refused by the library");
    each_name([](const read::Amounts& a) { return a.unfinished; }, "unfinished", Severity::warning,
              "calls never returned");
  }

  void unseen() {
    std::set<std::string> libraries;
    const auto processes = pick(job_, [&](const Process& p) {
      if (!p.footer) return false;
      libraries.insert(p.footer->unseen.begin(), p.footer->unseen.end());
      return !p.footer->unseen.empty();
    });
    if (processes.empty()) return;
    std::string list;
    for (const std::string& library : libraries) list += (list.empty() ? "" : ", ") + library;
    add("unseen", Severity::note, ranks_of(processes),
        "libraries that can move data past tprof are loaded: " + list, "");
  }

  // Only of processes that closed: another may simply not have got that far.
  void disagreement() {
    struct Member {
      std::int64_t rank;
      std::uint64_t collectives;
      std::string signature;
    };
    std::map<std::string, std::vector<Member>> members;
    for (const Process* p : job_.processes) {
      if (p->end != End::closed) continue;
      for (const auto& [epoch, ledger] : p->ledgers) {
        for (const read::Collectives& c : ledger.collectives) {
          const auto comm = p->comms.find(c.comm);
          if (comm == p->comms.end() || epoch != p->ledgers.rbegin()->first) continue;
          members[comm->second.id].push_back(
              {p->header.rank.value_or(comm->second.rank), c.count, c.signature});
        }
      }
    }
    for (const auto& entry : members) {
      const std::string& id = entry.first;
      const std::vector<Member>& all = entry.second;
      const auto differs = std::ranges::find_if(all, [&](const Member& m) {
        return m.collectives != all[0].collectives || m.signature != all[0].signature;
      });
      if (differs == all.end()) continue;
      add("mismatch", Severity::warning, {all[0].rank, differs->rank},
          differs->collectives != all[0].collectives
              ? fmt::format("on communicator {} rank {} issued {} collectives, rank {} {}", id,
                            all[0].rank, all[0].collectives, differs->rank, differs->collectives)
              : fmt::format("on communicator {} ranks {} and {} issued {} collectives each, but "
                            "not the same ones",
                            id, all[0].rank, differs->rank, all[0].collectives),
          "");
    }
  }

  void assumed_job() {
    if (!job_.assumed) return;
    add("assumed_job", Severity::warning, job_.ranks,
        "nothing but the folder connects these processes: no run id, no shared communicator",
        "set TPROF_RUN_ID, or start the job with tprof run");
  }

 private:
  void add(std::string kind, Severity severity, std::vector<std::int64_t> ranks, std::string text,
           std::string next) {
    found_.push_back(
        {std::move(kind), severity, std::move(ranks), std::move(text), std::move(next)});
  }

  void lost(const Process& p) {
    const std::string what = name_of(p) + (p.cut ? ": the file ends within a line" : "") +
                             (p.cut ? " and" : " did not close:") + " there is no ring file";
    if (p.ledgers.empty()) {
      add("lost", Severity::error, ranks_of({&p}),
          what +
              "; no ledger was written, so its counts "
              "are not known",
          "");
      return;
    }
    add("lost", Severity::error, ranks_of({&p}),
        what + "; its counts are exact until " + utc(known_until_ns(p)) + " and unknown after", "");
  }

  template <typename Count>
  void each_name(const Count& count, const char* kind, Severity severity, const char* what) {
    std::map<std::string, std::uint64_t> names;
    const auto processes = pick(job_, [&](const Process& p) {
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
    add(kind, severity, ranks_of(processes),
        fmt::format("{}: {} ({})", names_of(processes), what, list), "");
  }

  const match::Job& job_;
  std::vector<Problem>& found_;
};

}  // namespace

std::int64_t known_until_ns(const Process& process) {
  const std::int64_t ts = process.ledgers.empty() ? 0 : process.ledgers.rbegin()->second.ts_ns;
  return process.header.base_time_ns + ts;
}

bool complete(const match::Job& job, const std::vector<Problem>& problems) {
  const bool closed =
      std::ranges::all_of(job.processes, [](const Process* p) { return p->end == End::closed; });
  const bool error =
      std::ranges::any_of(problems, [](const Problem& p) { return p.severity == Severity::error; });
  return closed && !error;
}

std::vector<Problem> problems(const match::Job& job, const std::vector<read::Skipped>& skipped,
                              bool whole_job) {
  std::vector<Problem> found;
  Finder find(job, found);
  if (whole_job) find.missing_ranks();
  find.contested_ranks();
  find.not_closed();
  find.failed_calls();
  find.disagreement();
  find.unseen();
  find.dropped();
  find.assumed_job();
  for (const read::Skipped& s : skipped) {
    found.push_back({s.unreadable ? "unreadable" : "skipped",
                     s.unreadable ? Severity::error : Severity::note,
                     {},
                     s.reason,
                     ""});
  }
  std::ranges::stable_sort(found, std::ranges::greater(), &Problem::severity);
  return found;
}

}  // namespace tprof::diagnose
