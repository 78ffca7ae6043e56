#include "diagnose/diagnose.h"

#include <algorithm>
#include <tuple>

#include "diagnose/mismatch.h"
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
      const run::Said* said = c.said(*m.process);
      if (said != nullptr && !said->decreased.empty()) m.done = nullptr;
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

Diagnosed of_ledgers(const run::Lines& lines, const Options& options) {
  const SeenLines none;
  Case c{.job = lines.job(),
         .traces = lines.traces(),
         .options = options,
         .lines = none,
         .skipped = lines.traces().skipped};
  return said_of(c, rows_for(options));
}

}  // namespace

Diagnosed diagnose(const job::Job& job, const read::Traces& traces, const Options& options) {
  return diagnose(run::Lines(job, traces), options);
}

Diagnosed diagnose(const run::Lines& lines, const Options& options,
                   std::shared_ptr<const Meetings> meetings) {
  if (!options.read_lines) return of_ledgers(lines, options);
  if (meetings == nullptr) meetings = std::make_shared<const Meetings>(lines);
  const job::Job& job = lines.job();
  const std::size_t most =
      std::max(kMostOperations / std::max<std::size_t>(job.processes.size(), 1), kFewestOperations);
  const bool check = (options.asked & kCheck) != 0;
  const SeenLines seen = lines.each([&](const read::Process& rank) {
    return Seen{.last = LastCalls(rank),
                .sums = SumsOfLines(rank),
                .operations = check ? std::optional<Operations>(std::in_place, rank, most)
                                    : std::optional<Operations>()};
  });
  Case c{.job = job,
         .traces = lines.traces(),
         .options = options,
         .lines = seen,
         .meetings = std::move(meetings),
         .skipped = lines.traces().skipped,
         .read = &lines};
  const auto& unreadable = lines.unreadable();
  c.skipped.insert(c.skipped.end(), unreadable.begin(), unreadable.end());
  return said_of(c, rows_for(options));
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
