#include "check/diagnose.h"

#include <algorithm>

namespace tprof::check {

#define X(name) extern const Diagnosis name;
TPROF_DIAGNOSES(X)
#undef X

namespace {

// How many operations are kept in total, and at least for each rank. Only the newest are ever
// needed: a host runs about a thousand calls ahead of a stuck device.
constexpr std::size_t kMostOperations = 1 << 22;
constexpr std::size_t kFewestOperations = 64;

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
    for (const Member& m : comm.members) c.memberships[{m.process, m.comm->comm}] = {i, &m};
    // A file that contradicts itself is not compared with other files.
    for (Member& m : comm.members) {
      const run::MetadataHistory* history = c.history(*m.process);
      if (history != nullptr && !history->decreased.empty()) m.done = nullptr;
    }
    c.agreements.push_back(agreement_of(comm));
  }
}

Verdict verdict_of(bool differs, const Agreement& a) {
  return differs                    ? Verdict::different
         : !a.disagreements.empty() ? Verdict::not_as_far
         : a.all_there              ? Verdict::same
                                    : Verdict::same_of_those_seen;
}

// Call this before explain(): a finding that was not asked for must not absorb one that was.
void leave_out_others(const Case& c, Findings& findings) {
  std::set<std::string_view> asked{""};
  for (const Communicator& comm : c.communicators) asked.insert(comm.id);
  std::erase_if(findings, [&](const Finding& f) {
    return f.kind == Kind::late || !asked.contains(f.communicator);  // late: on any
  });
}

std::vector<CommunicatorVerdict> verdicts_of(const Case& c, const Findings& findings) {
  std::vector<CommunicatorVerdict> all;
  const std::set<std::string> differ = communicators_of(findings, {Kind::mismatch});
  const std::set<std::string> unfit =
      communicators_of(findings, {Kind::p2p_sizes, Kind::unmatched_p2p});
  for (std::size_t i = 0; i < c.communicators.size(); ++i) {
    const Communicator& comm = c.communicators[i];
    const Agreement& a = c.agreements[i];
    all.push_back({comm, a.collectives, a.fewest, a.most, verdict_of(differ.contains(comm.id), a),
                   unfit.contains(comm.id)});
  }
  return all;
}

}  // namespace

void CommunicatorVerdict::add(const CommunicatorVerdict& more) {
  for (const auto of : {&CommunicatorVerdict::collectives, &CommunicatorVerdict::fewest,
                        &CommunicatorVerdict::most}) {
    this->*of = read::saturated_sum(this->*of, more.*of);
  }
  sends = read::saturated_sum(sends, more.sends);
  receives = read::saturated_sum(receives, more.receives);
  pairs_differ = pairs_differ || more.pairs_differ;
  verdict = std::max(verdict, more.verdict);
}

const RankCalls& Case::calls(const read::Process& rank) const {
  static const read::Process kNobody;
  static const RankCalls kNone(kNobody);
  const RankCalls* its = lines.of(&rank);
  return its == nullptr ? kNone : *its;
}

Diagnosed diagnose(const job::Job& job, const read::Traces& traces, const Options& options) {
  return diagnose(run::Lines(job, traces), options);
}

Diagnosed diagnose(const run::Lines& lines, const Options& options,
                   std::shared_ptr<const Arrivals> arrivals) {
  const job::Job& job = lines.job();
  Case c{
      .job = job, .traces = lines.traces(), .options = options, .skipped = lines.traces().skipped};
  if (options.read_lines) {
    c.arrivals =
        arrivals != nullptr ? arrivals : std::make_shared<const Arrivals>(arrivals_of(lines));
    const std::size_t most = std::max(
        kMostOperations / std::max<std::size_t>(job.processes.size(), 1), kFewestOperations);
    c.lines = lines.each([&](const read::Process& rank) { return RankCalls(rank, most); });
    c.read = &lines;
    const auto& unreadable = lines.unreadable();
    c.skipped.insert(c.skipped.end(), unreadable.begin(), unreadable.end());
  }
  compare(c);
  c.channels = channels_of(c);
  c.older = older_dumps(c);
  const bool most_older = 2 * c.older.who.size() >= job.processes.size();
  Diagnosed said{.job = &job, .communicators = {}, .findings = {}};
  const auto tells = [&](const Diagnosis& d) {
    return (d.asked & options.asked) != 0 && ((d.asked & kStands) == 0 || !most_older);
  };
#define X(name) \
  if (tells(name)) name.reduce(c, said.findings);
  TPROF_DIAGNOSES(X)
#undef X
  if (options.comms != nullptr) leave_out_others(c, said.findings);
  said.communicators = verdicts_of(c, said.findings);
  explain(c, said.findings);
  order_and_cap(said.findings);
  return said;
}

bool complete(const job::Job& job, const Findings& findings) {
  const bool known = std::ranges::all_of(job.processes, [](const read::Process* p) {
    return p->end == read::End::closed || p->end == read::End::recovered;
  });
  // Even with all ranks there, they may have done different things.
  return known && std::ranges::none_of(findings, [](const Finding& f) {
           return (f.severity == Severity::error && f.kind != Kind::mismatch &&
                   f.kind != Kind::group_order) ||
                  (f.severity == Severity::warning &&
                   (f.kind == Kind::not_closed || f.kind == Kind::nothing_counted));
         });
}

}  // namespace tprof::check
