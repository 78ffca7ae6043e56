#include "diagnose/diagnose.h"

#include <algorithm>
#include <tuple>

#include "collect/collectors.h"
#include "diagnose/mismatch.h"
#include "diagnose/operations.h"
#include "diagnose/point_to_point.h"

namespace tprof::diagnose {

#define X(name) extern const Diagnosis name;
TPROF_DIAGNOSES(X)
#undef X

namespace {

// How many operations are kept of all ranks, and of each at least. More than the newest is never
// looked for: hosts run ahead of a device that stands still by a thousand calls or so.
constexpr std::size_t kMostOperations = 1 << 22;
constexpr std::size_t kFewestOperations = 64;

std::vector<const Diagnosis*> rows_for(const Options& options) {
#define X(name) &name,
  static constexpr const Diagnosis* kAll[] = {TPROF_DIAGNOSES(X)};
#undef X
  std::vector<const Diagnosis*> all;
  for (const Diagnosis* d : kAll) {
    if ((d->asked & options.asked) != 0 && (options.read_lines || !d->needs_lines)) {
      all.push_back(d);
    }
  }
  return all;
}

void compare(Case& c) {
  c.communicators = communicators(c.job);
  if (c.options.comms != nullptr) {
    std::erase_if(c.communicators, [&](const Communicator& comm) {
      return std::ranges::none_of(comm.members, [&](const Member& m) {
        return c.options.comms->on(*m.process, m.comm->comm);
      });
    });
  }
  for (std::size_t i = 0; i < c.communicators.size(); ++i) {
    Communicator& comm = c.communicators[i];
    for (const Member& m : comm.members) c.places[{m.process, m.comm->comm}] = {i, &m};
    // A file that contradicts itself is not compared with the others.
    for (Member& m : comm.members) {
      const auto* ledgers = c.lines.of<collect::DecreasedLedgers>(m.process);
      if (ledgers != nullptr && !ledgers->places.empty()) m.done = nullptr;
    }
    c.agreements.push_back(agreement_of(comm));
  }
}

Verdict verdict_of(bool differs, const Agreement& a) {
  return differs               ? Verdict::different
         : !a.partings.empty() ? Verdict::not_as_far
         : a.all_there         ? Verdict::same
                               : Verdict::same_of_those_seen;
}

// Before effects are folded into their causes: a cause that is not asked about must not take with
// it what is.
void leave_out_others(const Case& c, Findings& findings) {
  std::set<std::string_view> asked{""};
  for (const Communicator& comm : c.communicators) asked.insert(comm.id);
  std::erase_if(findings, [&](const Finding& f) {
    return f.kind == Kind::late || !asked.contains(f.communicator);  // late: to those of any
  });
}

Diagnosed said_of(Case& c, const std::vector<const Diagnosis*>& made) {
  compare(c);
  Diagnosed said{.job = &c.job, .communicators = {}, .findings = {}};
  for (const Diagnosis* d : made) d->reduce(c, said.findings);
  if (c.options.comms != nullptr) leave_out_others(c, said.findings);
  const std::set<std::string> differ = different(said.findings);
  const std::set<std::string> unfit = unfit_messages(said.findings);
  for (std::size_t i = 0; i < c.communicators.size(); ++i) {
    const auto& [comm, agreement] = std::tie(c.communicators[i], c.agreements[i]);
    const auto [sends, receives] = sends_and_receives(comm);
    said.communicators.push_back({comm, agreement.collectives, agreement.fewest, agreement.most,
                                  verdict_of(differ.contains(comm.id), agreement), sends, receives,
                                  unfit.contains(comm.id)});
  }
  explain(c, said.findings);
  order_and_cap(said.findings);
  return said;
}

}  // namespace

Diagnosed diagnose(const job::Job& job, const read::Traces& traces, const Options& options) {
  Diagnosed said;
  if (options.read_lines) {
    collect::Passes passes(job, traces, options.progress);
    want(passes, options, said);
    passes.read();
  } else {
    const collect::Lines none;
    Case c{
        .job = job, .traces = traces, .options = options, .lines = none, .skipped = traces.skipped};
    said = said_of(c, rows_for(options));
  }
  return said;
}

void want(collect::Passes& passes, const Options& options, Diagnosed& to) {
  const std::vector<const Diagnosis*> made = rows_for(options);
  const std::size_t most =
      kMostOperations / std::max<std::size_t>(passes.job().processes.size(), 1);
  const bool check = (options.asked & kCheck) != 0;
  const auto make = [made, most, check](const read::Process& rank, collect::Collectors& all) {
    collect::want<collect::DecreasedLedgers, collect::LastCalls>(
        rank, all);  // used by this file and by explain()
    if (check) collect::want<Operations>(rank, all, std::max(most, kFewestOperations));
    for (const Diagnosis* d : made) {
      if (d->collect != nullptr) d->collect(rank, all);
    }
  };
  passes.want(make, [made, options, &passes, &to,
                     meetings = want_meetings(passes)](const collect::Lines& lines) {
    Case c{.job = passes.job(),
           .traces = passes.traces(),
           .options = options,
           .lines = lines,
           .meetings = meetings,
           .skipped = passes.traces().skipped};
    const auto& unreadable = lines.unreadable();
    c.skipped.insert(c.skipped.end(), unreadable.begin(), unreadable.end());
    to = said_of(c, made);
  });
}

bool complete(const job::Job& job, const Findings& findings) {
  const bool known = std::ranges::all_of(job.processes, [](const read::Process* p) {
    return p->end == read::End::closed || p->end == read::End::recovered;
  });
  // Ranks that are all there can still have done different things.
  return known && std::ranges::none_of(findings, [](const Finding& f) {
           return (f.severity == Severity::error && f.kind != Kind::mismatch &&
                   f.kind != Kind::group_order) ||
                  (f.severity == Severity::warning && f.kind == Kind::not_closed);
         });
}

}  // namespace tprof::diagnose
