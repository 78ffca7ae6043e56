// Finds ranks whose device did not end a collective that other devices ended. The others had what
// this device sent, so no call of any host, made or missing, explains it.
#include "check/devices.h"

#include <algorithm>
#include <set>
#include <vector>

#include "check/diagnosis.h"
#include "check/ends.h"

namespace tprof::check {

namespace {

using read::End;
using read::Process;

// After this long the times of everything that devices finished have been read.
constexpr std::int64_t kAllReadNs = 1'000'000'000;

// True for a reason that hides no collective's end: only copies have it, a group as a whole has the
// time, or the call had not ended.
bool hides_no_end(const std::string& lost) {
  return lost == "sync" || lost == "mixed" || lost == "unread";
}

bool is_through(const Member& m, std::uint64_t seq, const Case& c) {
  return c.calls(*m.process).is_through(m.comm->comm, seq);
}

// A collective that a member's host called and its device did not end.
struct NotEnded {
  const Member* member = nullptr;
  const Communicator* communicator = nullptr;
  const Operation* call = nullptr;

  std::int64_t called_ns() const { return member->process->header.base_time_ns + call->ts_ns; }
};

// Adds those of one communicator. If most dumps say that it did not end, the others may have been
// written later, while the job ran. If some dumps are older than others, one that has fewer calls
// than others may be older, too.
void find(const Communicator& comm, const Case& c, std::vector<NotEnded>& all) {
  std::uint64_t most = 0;
  std::uint64_t most_calls = 0;
  for (const Member& m : comm.members) {
    const auto& device = c.calls(*m.process);
    most = std::max(most, device.on(m.comm->comm).ended.value_or(0));
    if (m.done != nullptr) most_calls = std::max(most_calls, m.count());
  }
  const std::size_t before = all.size();
  for (const Member& m : comm.members) {
    // A rank can't lack a call that others ended because of its device.
    if (most == 0 || is_through(m, most - 1, c) || !m.did(most - 1)) continue;
    if (!c.older.who.empty() && m.count() < most_calls) continue;
    const auto ended = ended_by(m, c);
    if (!ended || !m.did(*ended)) continue;
    // Calls of a communicator end in order, but a broadcast ends on some ranks without the others.
    // NCCL does nothing for calls without data, so no device ever ends them.
    const auto& calls = c.calls(*m.process).all;
    const auto call = std::ranges::find_if(calls, [&](const Operation& o) {
      return o.channel() == ChannelKey{m.comm->comm} && o.seq >= *ended && o.seq < most &&
             o.all_wait() && (o.bytes != 0 || m.dumped());
    });
    if (call != calls.end()) all.push_back({&m, &comm, &*call});
  }
  const bool dumps = comm.members[0].dumped();
  if (dumps && 2 * (all.size() - before) > comm.members.size()) all.resize(before);
}

void lost_devices(const Case& c, Findings& found) {
  const std::set<std::string> different = communicators_of(found, {Kind::mismatch});
  std::vector<NotEnded> all;
  for (const Communicator& comm : c.communicators) {
    if (!different.contains(comm.id)) find(comm, c, all);
  }
  if (all.empty()) return;
  std::ranges::stable_sort(all, {}, &NotEnded::called_ns);
  Processes who;
  Facts evidence;
  for (const auto& [member, communicator, call] : all) {
    if (std::ranges::find(who, member->process) != who.end()) continue;
    who.push_back(member->process);
    Processes others;
    for (const Member& other : communicator->members) {
      if (is_through(other, call->seq, c)) others.push_back(other.process);
    }
    evidence.push_back({Say::did_not_end,
                        {{"who", member->process},
                         {"function", call->function},
                         {"seq", call->seq},
                         {"communicator", communicator->id},
                         {"others", others}}});
  }
  shorten(evidence, 8);
  Finding& f = add(found, Kind::lost_device, who);
  f.communicator = all[0].communicator->id;
  f.seq = all[0].call->seq;
  f.function = all[0].call->function;
  f.evidence = std::move(evidence);
}

}  // namespace

bool has_all_times(const Process& p, const Case& c) {
  if (!has_all_ends(p) || p.end == End::dumped) return p.end == End::dumped;
  const bool none_lost = p.footer && p.footer->dropped.empty() &&
                         std::ranges::all_of(p.footer->timing_lost, hides_no_end,
                                             &std::pair<const std::string, std::uint64_t>::first);
  return none_lost && !p.snapshot && !is_stopped(p) && idle_ns(p, c).value_or(0) >= kAllReadNs;
}

std::optional<std::uint64_t> ended_by(const Member& m, const Case& c) {
  if (!has_all_times(*m.process, c)) return std::nullopt;
  return c.calls(*m.process).on(m.comm->comm).ended;
}

OlderDumps older_dumps(const Case& c) {
  OlderDumps older;
  std::set<const Process*> who;
  for (const Communicator& comm : c.communicators) {
    const auto ended = [&](const Member& m) { return m.dumped() ? ended_by(m, c).value_or(0) : 0; };
    const auto first = std::ranges::max_element(comm.members, {}, ended);
    if (first == comm.members.end() || ended(*first) == 0) continue;
    std::vector<const Operation*> calls;
    for (const Member& m : comm.members) {
      for (const Operation& o : c.calls(*m.process).all) {
        if (o.comm == m.comm->comm && !o.message()) calls.push_back(&o);
      }
    }
    // Ranks wait for all others in a call that it lacks, or in all that are known.
    const bool all_wait = std::ranges::all_of(calls, &Operation::all_wait);
    for (const Member& m : comm.members) {
      if (!m.dumped() || m.done == nullptr || m.did(ended(*first) - 1)) continue;
      const auto call = std::ranges::find_if(calls, [&](const Operation* o) {
        return all_wait || (o->all_wait() && o->seq >= m.count() && o->seq < ended(*first));
      });
      if (call == calls.end()) continue;
      who.insert(m.process);
      if (older.ended != nullptr) continue;
      older.ended = &*first;
      older.communicator = &comm;
      older.seq = m.count();
      older.function = (*call)->function;
    }
  }
  older.who = select(c.job.processes, [&](const Process& p) { return who.contains(&p); });
  return older;
}

extern const Diagnosis kLostDevice{kCheck | kStands, lost_devices};

}  // namespace tprof::check
