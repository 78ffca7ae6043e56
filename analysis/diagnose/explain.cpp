// Relates findings: an effect is reported with its cause, or not at all. Also tells which ranks
// ended first, since a launcher ends the other ranks when one has ended.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "diagnose/diagnosis.h"
#include "diagnose/ends.h"
#include "diagnose/exited.h"

namespace tprof::diagnose {
namespace {

using read::End;
using read::Process;

struct Relation {
  Kind cause;
  Kind effect;
  // Otherwise the cause covers the effect, which is dropped.
  enum Becomes { nothing, evidence, evidence_of_same_communicator } becomes = nothing;
};

// Applied in this order. A hang or a stop explains the calls and processes that ended with it, and
// a mismatch explains a hang or a stop. Where the order of calls or the sizes of messages are
// wrong, that is why nobody goes on.
constexpr Relation kRelations[] = {
    {Kind::missing_rank, Kind::missing_member},  // the world size already told which
    {Kind::p2p_sizes, Kind::hang, Relation::evidence},
    {Kind::p2p_sizes, Kind::stopped, Relation::evidence},
    {Kind::p2p_sizes, Kind::not_closed},
    {Kind::p2p_sizes, Kind::unfinished},
    {Kind::group_order, Kind::hang, Relation::evidence_of_same_communicator},
    {Kind::group_order, Kind::stopped, Relation::evidence_of_same_communicator},
    {Kind::group_order, Kind::not_closed},
    {Kind::group_order, Kind::unfinished},
    {Kind::lost_device, Kind::hang, Relation::evidence},
    {Kind::lost_device, Kind::stopped, Relation::evidence},
    {Kind::lost_device, Kind::not_closed},
    {Kind::lost_device, Kind::unfinished},
    {Kind::refused, Kind::hang, Relation::evidence_of_same_communicator},
    {Kind::refused, Kind::stopped, Relation::evidence_of_same_communicator},
    {Kind::hang, Kind::not_closed},
    {Kind::hang, Kind::unfinished},
    {Kind::stopped, Kind::not_closed},
    {Kind::stopped, Kind::unfinished},
    {Kind::mismatch, Kind::hang, Relation::evidence_of_same_communicator},
    {Kind::mismatch, Kind::stopped, Relation::evidence_of_same_communicator},
};

void apply(const Relation& relation, Findings& findings) {
  const auto place = [&](const Finding& f) {
    return relation.becomes == Relation::evidence_of_same_communicator
               ? std::string_view(f.communicator)
               : "";
  };
  std::map<std::string_view, Finding*> causes;  // the first per communicator, or the first of all
  for (Finding& f : findings) {
    const bool closed = f.kind == Kind::p2p_sizes && f.severity != Severity::error;
    if (f.kind == relation.cause && !closed) causes.try_emplace(place(f), &f);
  }
  std::vector<const Finding*> said;  // effects that have a cause, in their order
  for (const Finding& f : findings) {
    if (causes.empty() || f.kind != relation.effect) continue;
    const auto cause = causes.find(place(f));
    if (cause == causes.end()) continue;
    said.push_back(&f);
    if (relation.becomes == Relation::nothing) continue;
    auto& evidence = cause->second->evidence;
    evidence.push_back({Say::then, {{"what", f.text}}});
    evidence.insert(evidence.end(), f.evidence.begin(), f.evidence.end());
  }
  if (said.empty()) return;
  Findings left;
  auto next = said.begin();
  for (Finding& f : findings) {
    if (next != said.end() && *next == &f) {
      ++next;
    } else {
      left.push_back(std::move(f));
    }
  }
  findings = std::move(left);
}

// Ranks that fall silent within this time of each other are not told apart.
constexpr std::int64_t kSilentNs = 50'000'000;
constexpr std::size_t kMaxEarliest = 64;  // the earliest, which all are compared with

// Returns the processes for which no other is known to have ended before.
Processes first_to_end(const Processes& ended, const SeenLines& lines) {
  std::map<std::pair<std::string, bool>, const Process*> of_host;  // earliest, by boot and closed
  for (const Process* p : ended) {
    const std::pair key(p->header.boot_id, p->end == End::closed);
    const Process*& first = of_host.try_emplace(key, p).first->second;
    if (latest_ns(*p) < latest_ns(*first)) first = p;
  }
  Processes earliest;
  for (const auto& [key, p] : of_host) earliest.push_back(p);
  std::ranges::stable_sort(earliest, {}, [](const Process* p) { return latest_ns(*p); });
  if (earliest.size() > kMaxEarliest) earliest.resize(kMaxEarliest);
  Processes first = select(ended, [&](const Process& p) {
    return std::ranges::none_of(earliest,
                                [&](const Process* e) { return ended_before(*e, p, lines); });
  });
  // If another host has ranks that ended later, a host all of whose ranks are among the first tells
  // nothing.
  std::map<std::string, std::size_t> left;
  for (const Process* p : ended) ++left[p->header.boot_id];
  for (const Process* p : first) --left[p->header.boot_id];
  if (std::ranges::any_of(left, [](const auto& host) { return host.second != 0; })) {
    std::erase_if(first, [&](const Process* p) { return left[p->header.boot_id] == 0; });
  }
  return first;
}

// For how long none of these had made a call when the first of them ended, if the job stood: then
// who was heard of last tells nothing.
std::optional<Ns> stood_ns(const Processes& ended, const SeenLines& lines) {
  const auto quiet = quiet_ns(ended, lines);
  return quiet && *quiet > kStandsNs ? std::optional(Ns{*quiet}) : std::nullopt;
}

// Says who ended first. `others` are the processes that did not.
Fact who_ended_first(const Processes& closed, const Processes& killed, const Processes& others,
                     bool all_known, std::optional<Ns> stood) {
  const Processes& who = closed.empty() ? killed : closed;
  const Time at{end_ns(*who[0])};
  const auto status = exit_status_of(closed);
  if (!closed.empty() && !killed.empty()) {
    return {Say::first_unknown,
            {{"closed", closed}, {"status", status}, {"at", at}, {"killed", killed}}};
  }
  std::int64_t longer_ns = INT64_MAX;  // at least, from ranks on the same host
  for (const Process* p : others) {
    if (p->header.boot_id != who[0]->header.boot_id) continue;
    longer_ns = std::min(longer_ns, end_ns(*p) - end_ns(*who[0]));
  }
  const bool known = longer_ns >= 0 && longer_ns != INT64_MAX;
  return {closed.empty() ? Say::killed_first : Say::closed_first,
          {{"who", who},
           {"all_known", all_known},
           {"status", status},
           {"at", at},
           {"stood", stood},
           {"longer", known ? std::optional(Ns{longer_ns}) : std::nullopt}}};
}

// Adds which rank fell silent first, and returns it, for ranks of one host that were all killed at
// about the same time. It says no more than what was seen. Null: none did.
const Process* add_who_fell_silent(Processes killed, const SeenLines& lines, Finding& about) {
  if (killed.size() < 2) return nullptr;
  std::ranges::stable_sort(killed, {}, [](const Process* p) { return end_ns(*p); });
  const Process& first = *killed[0];
  const std::int64_t longer = end_ns(*killed[1]) - end_ns(first);
  const bool one_host = std::ranges::all_of(
      killed, [&](const Process* p) { return p->header.boot_id == first.header.boot_id; });
  if (!one_host || longer < kSilentNs) return nullptr;
  // Signals came in some order to ranks that had long made no call.
  if (stood_ns(killed, lines)) return nullptr;
  about.evidence.insert(
      about.evidence.begin(),
      {Say::fell_silent, {{"who", &first}, {"at", Time{end_ns(first)}}, {"longer", Ns{longer}}}});
  about.next = where_to_look(first);
  return &first;
}

// Leads with all ranks that were killed at about the same time, where the finding blames one for a
// copy in which it was, though its device may have waited for the rank that died; or one that fell
// silent after another.
void lead_with_all_killed(const Processes& killed, const Process* silent, Finding& about) {
  if (killed.size() < 2 || about.kind != Kind::stopped) return;
  const bool in_copy = about.text.what == Say::stand_inside && about.communicator.empty();
  const bool another =
      silent != nullptr && silent->header.rank && !about.ranks.contains(*silent->header.rank);
  if (!in_copy && !another) return;
  std::optional<Ns> longer;
  if (silent != nullptr) {
    std::erase_if(about.evidence, [](const Fact& f) { return f.what == Say::fell_silent; });
    std::int64_t next = INT64_MAX;
    for (const Process* p : killed) {
      if (p != silent) next = std::min(next, end_ns(*p));
    }
    longer = Ns{next - end_ns(*silent)};
  }
  if (in_copy) {
    set(about.text, {"killed", false});
    about.function.clear();
  }
  about.evidence.insert(about.evidence.begin(), std::move(about.text));
  about.text = {Say::killed_together,
                {{"who", killed},
                 {"silent", silent != nullptr ? std::optional(silent) : std::nullopt},
                 {"longer", longer},
                 {"known", silent != nullptr}}};
  about.ranks = ranks_of(killed);
  if (silent == nullptr) about.next = std::nullopt;
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

// Puts who ended first into the worst finding about ranks that ended or did not close. Does nothing
// where all closed, or where the ends of ranks can't be told apart.
void lead_with_who_ended_first(const Case& c, Findings& findings) {
  auto about = findings.end();
  for (auto f = findings.begin(); f != findings.end(); ++f) {
    if (f->severity == Severity::error || (f->kind != Kind::stopped && f->kind != Kind::not_closed))
      continue;
    if (about == findings.end() || about->severity < f->severity) about = f;
  }
  if (about == findings.end()) return;
  Processes ended;
  Processes others;
  Processes snapshots;
  for (const Process* p : c.job.processes) {
    if (p->end == End::lost || p->comms.empty()) continue;
    (p->snapshot ? snapshots : p->end == End::running ? others : ended).push_back(p);
  }
  const Processes first = first_to_end(ended, c.lines);
  const std::set<const Process*> firsts(first.begin(), first.end());
  Processes closed;
  Processes killed;
  for (const Process* p : ended) {
    const bool is_first = firsts.contains(p);
    (!is_first ? others : p->end == End::closed ? closed : killed).push_back(p);
  }
  // A process known by a snapshot may have ended right after it.
  Processes unknown;
  for (const Process* p : snapshots) {
    const bool lived =
        std::ranges::all_of(first, [&](const Process* e) { return ended_before(*e, *p, c.lines); });
    (lived ? others : unknown).push_back(p);
  }
  if (others.empty() && closed.empty()) {
    lead_with_all_killed(killed, add_who_fell_silent(killed, c.lines, *about), *about);
  }
  if (first.empty() || (others.empty() && (closed.empty() || killed.empty()))) return;
  const Processes& who = closed.empty() ? killed : closed;
  const bool named = std::ranges::any_of(who, [&](const Process* p) {
    return p->header.rank && about->ranks.contains(*p->header.rank);
  });
  const auto stood = others.empty() ? std::nullopt : stood_ns(ended, c.lines);
  about->evidence.insert(about->evidence.begin(),
                         who_ended_first(closed, killed, others, unknown.empty(), stood));
  if (about->kind == Kind::stopped && named) return;
  // If somebody ended all, none was first. A rank that was killed is not idle if others that
  // need it lived on; one that closed may have had no more to do.
  if (about->severity == Severity::note) {
    if (!closed.empty() || !share_communicator(killed, others)) return;
    about->severity = Severity::warning;
  }
  if (about->communicator.empty()) about->function.clear();
  about->kind = Kind::stopped;
  about->ranks = ranks_of(first);
  std::swap(about->evidence[0], about->text);
  const auto [earliest, latest] =
      std::ranges::minmax(first, {}, [](const Process* p) { return end_ns(*p); });
  about->time = TimeRange{end_ns(*earliest), end_ns(*latest)};
  if (!unknown.empty()) about->evidence.push_back(unknown_after(unknown));
  about->next = where_to_look(*who[0], stood ? idle_since_ns(*who[0], c.lines) : std::nullopt);
  std::rotate(findings.begin(), about, about + 1);
}

// Keeps guesses at what a running job may do only if nothing is known of what holds it up.
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
  // A summary says how each trace ends, and no more.
  if (c.options.asked == kCheck) lead_with_who_ended_first(c, findings);
  // Who ended first is told with its status, and others may have failed because of it.
  apply({Kind::stopped, Kind::exited}, findings);
}

}  // namespace tprof::diagnose
