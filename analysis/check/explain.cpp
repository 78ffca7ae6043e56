// Relates findings: an effect is reported with its cause or not at all. Also finds which ranks
// ended first, since a launcher kills the others when one has ended.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "check/diagnosis.h"
#include "check/ends.h"
#include "check/finding.h"

namespace tprof::check {
namespace {

using read::End;
using read::Process;

using Effects = std::array<Kind, 2>;
constexpr Effects kStanding{Kind::hang, Kind::stopped};
constexpr Effects kEnds{Kind::not_closed, Kind::unfinished};

struct Relation {
  Kind cause;
  Effects effects;
  // Otherwise the effect is dropped.
  enum Becomes { nothing, evidence, evidence_of_same_communicator } becomes = nothing;
};

// Applied in this order. A hang or a stop explains the calls and processes that ended with it, and
// a mismatch explains a hang or a stop. So does a wrong order of calls, a wrong message size, or a
// lost device.
constexpr Relation kRelations[] = {
    {Kind::missing_rank,
     {Kind::missing_member, Kind::missing_member}},  // the world size shows the same ranks
    {Kind::p2p_sizes, kStanding, Relation::evidence},
    {Kind::p2p_sizes, kEnds},
    {Kind::group_order, kStanding, Relation::evidence_of_same_communicator},
    {Kind::group_order, kEnds},
    {Kind::lost_device, kStanding, Relation::evidence},
    {Kind::lost_device, kEnds},
    {Kind::refused, kStanding, Relation::evidence_of_same_communicator},
    {Kind::hang, kEnds},
    {Kind::stopped, kEnds},
    {Kind::mismatch, kStanding, Relation::evidence_of_same_communicator},
};
// `stopped` names the first to end with its exit status; others may have failed because of it.
constexpr Relation kExits{Kind::stopped, {Kind::exited, Kind::exited}};

void apply(const Relation& relation, Findings& findings) {
  const auto place = [&](const Finding& f) {
    return relation.becomes == Relation::evidence_of_same_communicator ? f.communicator : "";
  };
  std::map<std::string, Finding*> causes;  // the first of each communicator, or of all
  for (Finding& f : findings) {
    const bool closed = f.kind == Kind::p2p_sizes && f.severity != Severity::error;
    if (f.kind == relation.cause && !closed) causes.try_emplace(place(f), &f);
  }
  const auto is_effect = [&](const Finding& f) {
    return std::ranges::count(relation.effects, f.kind) != 0 && causes.contains(place(f));
  };
  for (const Finding& f : findings) {
    if (relation.becomes == Relation::nothing || !is_effect(f)) continue;
    tell_in(*causes.at(place(f)), Say::then, f);
  }
  std::erase_if(findings, is_effect);
}

// Returns the processes before which no other is known to have ended.
Processes first_to_end(const Processes& ended, const Case& c) {
  const Processes earliest = earliest_of(ended);
  Processes first = select(ended, [&](const Process& p) {
    return std::ranges::none_of(earliest, [&](const Process* e) { return ended_before(*e, p, c); });
  });
  // A host with all of its ranks among the first says nothing if another host has ranks that ended
  // later.
  std::map<std::string_view, std::size_t> later;
  for (const Process* p : ended) ++later[p->header.boot_id];
  for (const Process* p : first) --later[p->header.boot_id];
  if (std::ranges::any_of(later, [](const auto& host) { return host.second != 0; })) {
    std::erase_if(first, [&](const Process* p) { return later[p->header.boot_id] == 0; });
  }
  return first;
}

// The processes that ended first, and the others.
struct Ends {
  Processes ended{};    // all that ended
  Processes closed{};   // the first, if they closed
  Processes killed{};   // the first, if they were killed
  Processes others{};   // ended later, or still run
  Processes unknown{};  // known by a snapshot: they may have ended right after it

  const Processes& first() const { return closed.empty() ? killed : closed; }
};

Ends ends_of(const Case& c) {
  Ends ends;
  Processes snapshots;
  for (const Process* p : c.job.processes) {
    if (p->end == End::lost || p->comms.empty()) continue;
    const bool runs = p->end == End::running;
    (p->snapshot ? snapshots : runs ? ends.others : ends.ended).push_back(p);
  }
  const Processes first = first_to_end(ends.ended, c);
  const std::set<const Process*> firsts(first.begin(), first.end());
  for (const Process* p : ends.ended) {
    const bool closed = p->end == End::closed;
    (!firsts.contains(p) ? ends.others : closed ? ends.closed : ends.killed).push_back(p);
  }
  for (const Process* p : snapshots) {
    const bool lived =
        std::ranges::all_of(first, [&](const Process* e) { return ended_before(*e, *p, c); });
    (lived ? ends.others : ends.unknown).push_back(p);
  }
  return ends;
}

Fact who_ended_first(const Ends& ends, std::optional<Ns> stood) {
  const Process& first = *ends.first()[0];
  const Time at{end_ns(first)};
  const auto status = exit_status_of(ends.closed);
  if (!ends.closed.empty() && !ends.killed.empty()) {
    return {Say::first_unknown,
            {{"closed", ends.closed}, {"status", status}, {"at", at}, {"killed", ends.killed}}};
  }
  std::int64_t longer_ns = INT64_MAX;  // a lower bound, from ranks on the same host
  for (const Process* p : ends.others) {
    if (p->header.boot_id != first.header.boot_id) continue;
    longer_ns = std::min(longer_ns, end_ns(*p) - end_ns(first));
  }
  const bool known = longer_ns >= 0 && longer_ns != INT64_MAX;
  return {ends.closed.empty() ? Say::killed_first : Say::closed_first,
          {{"who", ends.first()},
           {"all_known", ends.unknown.empty()},
           {"status", status},
           {"at", at},
           {"stood", stood},
           {"longer", known ? std::optional(Ns{longer_ns}) : std::nullopt}}};
}

void lead_with(Fact text, Finding& about) {
  about.evidence.insert(about.evidence.begin(), std::exchange(about.text, std::move(text)));
}

// If all ranks of one host were killed at about the same time, says which one fell silent first. If
// the finding blames another rank, or a rank for a copy whose device may have waited for the dead
// rank, the finding names all of them instead.
void tell_of_all_killed(Processes killed, const Case& c, Finding& about) {
  // Ranks that fall silent within this time of each other have no order.
  constexpr std::int64_t kSilentNs = 50'000'000;
  if (killed.size() < 2) return;
  std::ranges::stable_sort(killed, {}, [](const Process* p) { return end_ns(*p); });
  const Process& first = *killed[0];
  const Ns longer{end_ns(*killed[1]) - end_ns(first)};
  const bool one_host = std::ranges::all_of(
      killed, [&](const Process* p) { return p->header.boot_id == first.header.boot_id; });
  // If they had long made no call, the order is only that of the signals.
  const bool silent = one_host && longer.n >= kSilentNs && !stood_ns(killed, c);
  const bool in_copy = about.text.what == Say::stand_inside && about.communicator.empty();
  const bool another = silent && first.header.rank && !about.ranks.contains(*first.header.rank);
  if (about.kind == Kind::stopped && (in_copy || another)) {
    if (in_copy) set(about.text, {"killed", false});
    if (in_copy) about.function.clear();
    lead_with({Say::killed_together, {{"who", killed}, {"known", silent}}}, about);
    if (silent) set(about.text, {"silent", &first});
    if (silent) set(about.text, {"longer", longer});
    about.ranks = ranks_of(killed);
    about.next = std::nullopt;
  } else if (silent) {
    about.evidence.insert(
        about.evidence.begin(),
        {Say::fell_silent, {{"who", &first}, {"at", Time{end_ns(first)}}, {"longer", longer}}});
  }
  if (silent) about.next = where_to_look(first);
}

bool share_communicator(const Processes& some, const Processes& others) {
  std::set<std::string_view> ids;
  for (const Process* p : some) {
    for (const auto& [number, comm] : p->comms) {
      if (comm.known()) ids.insert(comm.id.str());
    }
  }
  return std::ranges::any_of(others, [&](const Process* p) {
    return std::ranges::any_of(
        p->comms, [&](const auto& comm) { return ids.contains(comm.second.id.str()); });
  });
}

// Adds who ended first to the worst finding about how ranks ended. Does nothing if all closed, or
// if the ends of ranks have no order.
void lead_with_who_ended_first(const Case& c, Findings& findings) {
  const auto rank_of = [](const Finding& f) {
    const bool of_end = f.kind == Kind::stopped || f.kind == Kind::not_closed;
    return of_end && f.severity != Severity::error ? static_cast<int>(f.severity) : -1;
  };
  const auto about = std::ranges::max_element(findings, {}, rank_of);
  if (about == findings.end() || rank_of(*about) < 0) return;
  const Ends ends = ends_of(c);
  const auto& [ended, closed, killed, others, unknown] = ends;
  if (others.empty() && closed.empty()) tell_of_all_killed(killed, c, *about);
  const bool told_apart = !others.empty() || (!closed.empty() && !killed.empty());
  if (ends.first().empty() || !told_apart) return;
  const bool named = std::ranges::any_of(ends.first(), [&](const Process* p) {
    return p->header.rank && about->ranks.contains(*p->header.rank);
  });
  // If the job stood still, it means nothing who was heard of last.
  const auto stood = others.empty() ? std::nullopt : stood_ns(ended, c);
  Fact text = who_ended_first(ends, stood);
  // If all were killed together, none was first. A killed rank was not idle if others that need it
  // lived on; a closed one may have been done.
  const bool may_be_well =
      about->severity == Severity::note && (!closed.empty() || !share_communicator(killed, others));
  if ((about->kind == Kind::stopped && named) || may_be_well) {
    about->evidence.insert(about->evidence.begin(), std::move(text));
    return;
  }
  lead_with(std::move(text), *about);
  if (about->communicator.empty()) about->function.clear();
  about->kind = Kind::stopped;
  about->severity = Severity::warning;
  Processes first = closed;
  first.insert(first.end(), killed.begin(), killed.end());
  about->ranks = ranks_of(first);
  about->time.reset();
  for (const Process* p : first) about->time = joined(about->time, {end_ns(*p), end_ns(*p)});
  if (!unknown.empty()) about->evidence.push_back(unknown_after(unknown));
  const Process& look = *ends.first()[0];
  about->next = where_to_look(look, stood ? idle_since_ns(look, c) : std::nullopt);
  std::rotate(findings.begin(), about, about + 1);
}

// Drops guesses about a running job if it is known what holds it up.
void leave_out_what_it_may_do(Findings& findings) {
  const bool known = std::ranges::any_of(findings, keeps_from_going_on);
  const auto running = std::ranges::find(findings, Kind::running, &Finding::kind);
  if (!known || running == findings.end()) return;
  for (const char* name : {"last", "pid", "host"}) set(running->text, {name, std::nullopt});
}

}  // namespace

void explain(const Case& c, Findings& findings) {
  for (const Relation& relation : kRelations) apply(relation, findings);
  leave_out_what_it_may_do(findings);
  // A summary only says how each trace ends.
  if (c.options.asked == kCheck) lead_with_who_ended_first(c, findings);
  apply(kExits, findings);
}

}  // namespace tprof::check
