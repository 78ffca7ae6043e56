#include "diagnose/waits.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "diagnose/completeness.h"
#include "diagnose/point_to_point.h"

namespace tprof::diagnose {
namespace {

using read::End;
using read::Process;

class Finder {
 public:
  Finder(const match::Job& job, const std::vector<Communicator>& communicators, const Facts& facts,
         std::int64_t stuck_after_ns)
      : job_(job), facts_(facts), stuck_after_ns_(stuck_after_ns) {
    for (const Communicator& c : communicators) {
      for (const Member& m : c.members) places_[{m.process, m.comm->comm}] = {&c, &m};
    }
  }

  Waits run(const std::vector<Communicator>& communicators) {
    for (const Process* p : job_.processes) open_calls(*p);
    for (const OpenCall& call : waits_.open) {
      if (call.collective && call.member != nullptr && call.seq) {
        std::uint64_t& entered = entered_[call.member];
        entered = std::max(entered, *call.seq + 1);
      } else if (call.member != nullptr && call.seq && call.peer) {
        std::uint64_t& n = talking_[{call.member, *call.peer, call.function == "ncclSend"}];
        n = std::max(n, *call.seq + 1);
      }
    }
    for (const Communicator& c : communicators) meetings(c);
    for (const OpenCall& call : waits_.open) point_to_point(call);
    return std::move(waits_);
  }

 private:
  struct Place {
    const Communicator* communicator = nullptr;
    const Member* member = nullptr;
  };

  Place place(const Process& p, std::optional<std::int64_t> comm) const {
    const auto found = comm ? places_.find({&p, *comm}) : places_.end();
    return found == places_.end() ? Place{} : found->second;
  }

  // Of a process that ended or stands still: a running one is inside a call most of its time.
  void open_calls(const Process& p) {
    if (p.end != End::recovered && p.end != End::partial && p.end != End::running) return;
    const auto facts = facts_.find(&p);
    if (facts != facts_.end()) {
      for (const read::Event& e : facts->second.open) {
        const std::int64_t since = p.header.base_time_ns + e.ts_ns;
        if (p.end == End::running && end_ns(p) - since < stuck_after_ns_) continue;
        const Place at = place(p, e.comm);
        waits_.open.push_back({.process = &p,
                               .communicator = at.communicator,
                               .member = at.member,
                               .function = e.name,
                               .collective = e.collective(),
                               .seq = e.numbered ? std::optional(e.seq) : std::nullopt,
                               .peer = e.peer,
                               .since_ns = since,
                               .thread = e.thread});
        if (p.snapshot && may_have_returned(waits_.open.back())) waits_.open.pop_back();
      }
      return;
    }
    if (p.end == End::running || p.ledgers.empty()) return;
    for (const read::Row& row : p.ledgers.rbegin()->second.rows) {
      if (row.amounts.unfinished == 0) continue;
      const Place at = place(p, row.comm);
      const bool collective = row.comm && row.bucket != Bucket::P2P;
      const bool known = collective && at.member != nullptr && at.member->done != nullptr;
      waits_.open.push_back({.process = &p,
                             .communicator = at.communicator,
                             .member = at.member,
                             .function = row.name,
                             .collective = collective,
                             .seq = known ? std::optional(at.member->count()) : std::nullopt,
                             .peer = std::nullopt,
                             .since_ns = std::nullopt,
                             .thread = std::nullopt});
    }
  }

  std::uint64_t entered(const Member& m) const {
    const auto open = entered_.find(&m);
    const std::uint64_t done = m.done == nullptr ? 0 : m.count();
    return open == entered_.end() ? done : std::max(done, open->second);
  }

  // A running process that made a call lately may be on its way; so may one of which that is not
  // known.
  bool on_its_way(const Process& p) const {
    if (p.end != End::running) return false;
    const auto facts = facts_.find(&p);
    if (facts == facts_.end() || !knows_last(p, facts->second)) return true;
    const read::Event& last = *facts->second.last;
    return end_ns(p) - p.header.base_time_ns - last.ts_ns - last.dur_ns < stuck_after_ns_;
  }

  // By when, on the clock of its host, it had made its last call.
  std::int64_t called_ns(const Process& p) const {
    const auto facts = facts_.find(&p);
    if (facts == facts_.end() || !knows_last(p, facts->second)) return end_ns(p);
    const read::Event& last = *facts->second.last;
    std::int64_t ts = last.ts_ns + last.dur_ns;
    for (const read::Event& e : facts->second.open) ts = std::max(ts, e.ts_ns);
    return p.header.base_time_ns + ts;
  }

  // The same, of its collectives on this communicator.
  std::int64_t called_ns(const Member& m) const {
    const Process& p = *m.process;
    const auto facts = facts_.find(&p);
    if (facts == facts_.end()) return end_ns(p);
    for (const read::Event& e : facts->second.open) {
      if (e.collective() && e.comm == m.comm->comm) return p.header.base_time_ns + e.ts_ns;
    }
    const auto last = facts->second.last_collective.find(m.comm->comm);
    const bool known =
        last != facts->second.last_collective.end() && last->second.seq + 1 == m.count();
    if (!known) return end_ns(p);
    return p.header.base_time_ns + last->second.ts_ns + last->second.dur_ns;
  }

  // What a process that is known by a snapshot did after it is not known. It stood still while
  // another one went on if it did so for long enough before that, on its own clock.
  bool may_have_gone_on(const Process& p, const Process& other, std::int64_t called_ns) const {
    if (!p.snapshot) return false;
    const auto doubt = clock_doubt_ns(other, p, facts_);
    return !doubt || end_ns(p) - *doubt - stuck_after_ns_ < called_ns;
  }

  // Who of each host was the last to call, the latest first.
  using LastToCall = std::vector<std::pair<std::int64_t, const Process*>>;
  LastToCall last_to_call(const std::vector<const Member*>& members) const {
    std::map<std::string_view, std::pair<std::int64_t, const Process*>> of_host;
    for (const Member* m : members) {
      auto& last = of_host[m->process->header.boot_id];
      const std::int64_t ns = called_ns(*m);
      if (last.second == nullptr || last.first < ns) last = {ns, m->process};
    }
    LastToCall calls;
    for (const auto& [host, call] : of_host) calls.push_back(call);
    std::ranges::stable_sort(calls, std::ranges::greater(), &LastToCall::value_type::first);
    return calls;
  }
  bool may_have_gone_on(const Process& p, const LastToCall& calls) const {
    return std::ranges::any_of(
        calls, [&](const auto& call) { return may_have_gone_on(p, *call.second, call.first); });
  }

  // Somebody is known to be further than this call of a snapshot.
  bool may_have_returned(const OpenCall& call) {
    if (call.communicator == nullptr || !call.seq) return false;
    if (!call.collective) {
      const Member* other = other_end(call);
      if (other == nullptr) return false;
      const auto came = came_to(*other, call.member->comm->rank, call.function != "ncclSend");
      return came.value_or(0) > *call.seq &&
             may_have_gone_on(*call.process, *other->process, called_ns(*other->process));
    }
    const auto [at, fresh] = further_.try_emplace({call.communicator, *call.seq});
    if (fresh) {
      std::vector<const Member*> further;
      for (const Member& m : call.communicator->members) {
        if (m.done != nullptr && m.count() > *call.seq) further.push_back(&m);
      }
      at->second = last_to_call(further);
    }
    return may_have_gone_on(*call.process, at->second);
  }

  // The first collective that not all have called. Who came to it waits for who did not, on the
  // device or inside the call.
  void meetings(const Communicator& c) {
    std::uint64_t most = 0;
    std::uint64_t least = UINT64_MAX;
    bool unclosed = false;
    for (const Member& m : c.members) {
      if (m.done == nullptr || m.process->end == End::lost) continue;
      unclosed = unclosed || !m.closed();
      most = std::max(most, entered(m));
      least = std::min(least, entered(m));
    }
    if (!unclosed) return;
    Meeting meeting{.communicator = &c, .seq = least, .came = {}, .absent = {}};
    for (const Member& m : c.members) {
      if (m.done == nullptr || m.process->end == End::lost) continue;
      if (entered(m) > least) {
        meeting.came.push_back(&m);
      } else if (!on_its_way(*m.process)) {
        meeting.absent.push_back(&m);
      }
    }
    if (std::ranges::any_of(meeting.absent, [](const Member* m) { return m->process->snapshot; })) {
      const LastToCall calls = last_to_call(meeting.came);
      std::erase_if(meeting.absent,
                    [&](const Member* m) { return may_have_gone_on(*m->process, calls); });
    }
    // Equally far: nobody waits, unless for ranks of which nothing is known.
    if (most == least || meeting.absent.empty()) return;
    std::vector<const Process*> absent;
    for (const Member* m : meeting.absent) absent.push_back(m->process);
    waits_.targets.push_back({std::move(absent), std::nullopt});
    for (const Member* m : meeting.came) {
      if (!m->closed()) waits_.on[m->process].push_back(waits_.targets.size() - 1);
    }
    waits_.meetings.push_back(std::move(meeting));
  }

  // How many sends to a rank, or receives from it, returned; nothing: not known.
  std::optional<std::uint64_t> came_to(const Member& m, std::int64_t peer, bool send) const {
    const Process& p = *m.process;
    const auto facts = facts_.find(&p);
    if (facts == facts_.end() || !p.footer || p.footer->dropped.contains("ring")) {
      return std::nullopt;
    }
    const auto talked = facts->second.talked.find({m.comm->comm, peer, send});
    const Channel* channel = channel_of(m, peer, send, facts_);
    std::uint64_t n = channel == nullptr ? 0 : channel->seqs.end();
    if (talked != facts->second.talked.end()) return std::max(n, talked->second);
    if (!p.footer->dropped.empty()) return std::nullopt;
    return n;
  }

  // Of an open send or receive: who has to call the other one.
  static const Member* other_end(const OpenCall& call) {
    const bool two_sided = call.function == "ncclSend" || call.function == "ncclRecv";
    if (!two_sided || call.communicator == nullptr || !call.peer || !call.seq) return nullptr;
    const Communicator& c = *call.communicator;
    const auto rank = [](const Member& m) { return m.comm->rank; };
    const auto other = std::ranges::lower_bound(c.members, *call.peer, {}, rank);
    if (other == c.members.end() || rank(*other) != *call.peer) return nullptr;
    return other->process == call.process ? nullptr : &*other;
  }

  void point_to_point(const OpenCall& call) {
    const Member* other = other_end(call);
    if (other == nullptr || on_its_way(*other->process)) return;
    const std::int64_t since = call.since_ns.value_or(end_ns(*call.process));
    if (may_have_gone_on(*other->process, *call.process, since)) return;
    const bool send = call.function == "ncclSend";
    const auto known = came_to(*other, call.member->comm->rank, !send);
    if (!known) return;
    std::uint64_t came = *known;
    const auto open = talking_.find({other, call.member->comm->rank, !send});
    if (open != talking_.end()) came = std::max(came, open->second);
    if (came > *call.seq) return;
    waits_.targets.push_back(
        {{other->process}, static_cast<std::size_t>(&call - waits_.open.data())});
    waits_.on[call.process].push_back(waits_.targets.size() - 1);
  }

  const match::Job& job_;
  const Facts& facts_;
  std::int64_t stuck_after_ns_;
  std::map<std::pair<const Process*, std::int64_t>, Place> places_;
  std::map<const Member*, std::uint64_t> entered_;
  // Open sends and receives, by member, peer and direction: the number behind the last.
  std::map<std::tuple<const Member*, std::int64_t, bool>, std::uint64_t> talking_;
  // By the collective of a communicator: those that returned from it.
  std::map<std::pair<const Communicator*, std::uint64_t>, LastToCall> further_;
  Waits waits_;
};

}  // namespace

std::int64_t end_ns(const Process& process) {
  // Within bounds in which differences are no overflow, whatever a file says.
  return std::clamp<std::int64_t>(known_until_ns(process), 0, INT64_MAX / 8 * 5);
}

std::optional<std::int64_t> stood_ns(const OpenCall& call) {
  if (!call.since_ns) return std::nullopt;
  return std::max<std::int64_t>(end_ns(*call.process) - *call.since_ns, 0);
}

// One host has one clock. Between hosts, the first collective of a communicator tells: its ranks
// call it soon after they have made the communicator together, so what lies between two such calls
// is the ranks' own delay and the difference of their clocks. Twice as much is beyond doubt.
std::optional<std::int64_t> clock_doubt_ns(const Process& a, const Process& b, const Facts& facts) {
  if (a.header.boot_id == b.header.boot_id) return 0;
  const auto of_a = facts.find(&a);
  const auto of_b = facts.find(&b);
  if (of_a == facts.end() || of_b == facts.end()) return std::nullopt;
  for (const auto& [number, ts] : of_a->second.begun) {
    const auto comm = a.comms.find(number);
    if (comm == a.comms.end()) continue;
    for (const auto& [other, other_ts] : of_b->second.begun) {
      const auto theirs = b.comms.find(other);
      if (theirs == b.comms.end() || theirs->second.id != comm->second.id) continue;
      const std::int64_t apart =
          std::abs(a.header.base_time_ns + ts - b.header.base_time_ns - other_ts);
      return 1'000'000'000 + 2 * std::min(apart, INT64_MAX / 8);
    }
  }
  return std::nullopt;
}

Waits waits_of(const match::Job& job, const std::vector<Communicator>& communicators,
               const Facts& facts, std::int64_t stuck_after_ns) {
  return Finder(job, communicators, facts, stuck_after_ns).run(communicators);
}

}  // namespace tprof::diagnose
