#include "diagnose/waits.h"

#include <algorithm>

#include "diagnose/ends.h"
#include "diagnose/last_calls.h"

namespace tprof::diagnose {
namespace {

using read::End;
using read::Process;

// Returns the channel in which the call is numbered; nullopt if it has no number.
std::optional<ChannelKey> key_of(const OpenCall& call) {
  if (call.member == nullptr || !call.seq || (!call.collective && !call.peer)) return std::nullopt;
  return ChannelKey{call.member->comm->comm, call.collective ? ChannelKey::kEverybody : *call.peer,
                    call.send()};
}

// Returns the member that has to make the other end of a send or receive; null if not known.
const Member* other_end(const Communicator& c, const Member& me, const ChannelKey& key) {
  const Member* other = member_of(c, key.peer);
  return other == &me ? nullptr : other;
}

ChannelKey key_of_other_end(const Member& me, const ChannelKey& key, const Member& other) {
  return {other.comm->comm, me.comm->rank, !key.send};
}

class Finder {
 public:
  explicit Finder(const Case& c) : case_(c), stuck_after_ns_(c.options.stuck_after_ns) {}

  Waits run() {
    for (const Process* p : case_.job.processes) add_open_calls(*p);
    for (const OpenCall& call : waits_.open) {
      waits_.stands_in.try_emplace(call.process, &call);
      const auto key = key_of(call);
      if (!key) continue;
      const OpenCall*& entered = entered_[{call.process, *key}];
      if (entered == nullptr || *entered->seq < *call.seq) entered = &call;
    }
    for (const Communicator& c : case_.communicators) {
      wait_for_absent(c);
      for (const Member& m : c.members) wait_for_other_ends(c, m);
    }
    add_life_waits(
        case_, [this](const Process& p) { return on_its_way(p); }, waits_);
    return std::move(waits_);
  }

 private:
  const LastCalls* calls_of(const Process& p) const { return case_.lines.of<LastCalls>(&p); }

  // Makes an open call on the communicator that has this number in the process.
  OpenCall open_call(const Process& p, std::optional<std::int64_t> comm,
                     const std::string& function) const {
    const auto place = comm ? case_.places.find({&p, *comm}) : case_.places.end();
    const bool known = place != case_.places.end();
    return {.process = &p,
            .communicator = known ? &case_.communicators[place->second.first] : nullptr,
            .member = known ? place->second.second : nullptr,
            .function = function};
  }

  // Adds the open calls of a process that ended or is stuck. A running one is inside a call most of
  // its time, so only long calls count.
  void add_open_calls(const Process& p) {
    if (p.end == End::closed || p.end == End::lost) return;
    if (const LastCalls* calls = calls_of(p)) {
      for (const read::Event& e : calls->open) {
        const std::int64_t since = p.header.base_time_ns + e.ts_ns;
        if (p.end == End::running && end_ns(p) - since < stuck_after_ns_) continue;
        OpenCall call = open_call(p, e.comm, e.name);
        call.collective = e.collective();
        if (e.numbered) call.seq = e.seq;
        call.peer = e.peer;
        call.since_ns = since;
        call.thread = e.thread;
        if (!p.snapshot || !may_have_returned(call)) waits_.open.push_back(std::move(call));
      }
      for (const read::LifeCall& c : calls->open_life) {
        const std::int64_t since = p.header.base_time_ns + c.ts_ns;
        if (p.end == End::running && end_ns(p) - since < stuck_after_ns_) continue;
        if (!c.group_ends) continue;  // it is not inside: the work is done when the group ends
        OpenCall call = open_call(p, c.comm, c.name);
        call.since_ns = since;
        call.thread = c.thread;
        call.life = &c;
        waits_.open.push_back(std::move(call));
      }
      return;
    }
    if (p.end == End::running || !p.ledger) return;
    for (const read::Row& row : p.ledger->rows) {
      if (row.amounts.unfinished == 0) continue;
      OpenCall call = open_call(p, row.comm, row.name);
      call.collective = row.comm && row.bucket != Bucket::P2P;
      const bool known = call.collective && call.member != nullptr && call.member->done != nullptr;
      if (known) call.seq = call.member->count();
      waits_.open.push_back(std::move(call));
    }
  }

  const OpenCall* entered(const Process* p, const ChannelKey& key) const {
    const auto open = entered_.find({p, key});
    return open == entered_.end() ? nullptr : open->second;
  }

  // Returns how many collectives it came to.
  std::uint64_t came_to(const Member& m) const {
    const OpenCall* open = entered(m.process, {m.comm->comm});
    return std::max(m.done == nullptr ? 0 : m.count(), open == nullptr ? 0 : *open->seq + 1);
  }

  // True for a running process that made a call lately, or whose last call is not known: it may be
  // on its way.
  bool on_its_way(const Process& p) const {
    if (p.end != End::running) return false;
    const auto idle_since = idle_since_ns(p, case_.lines);
    return !idle_since || end_ns(p) - *idle_since < stuck_after_ns_;
  }

  // Returns a time, on its host's clock, by which it had called its last collective of the
  // communicator.
  std::int64_t called_ns(const Member& m) const {
    const Process& p = *m.process;
    const LastCalls* calls = calls_of(p);
    if (calls == nullptr) return end_ns(p);
    for (const read::Event& e : calls->open) {
      if (e.collective() && e.comm == m.comm->comm) return p.header.base_time_ns + e.ts_ns;
    }
    const auto last = calls->last_collective.find(m.comm->comm);
    if (last == calls->last_collective.end() || last->second.seq + 1 != m.count()) {
      return end_ns(p);
    }
    return p.header.base_time_ns + last->second.ts_ns + last->second.dur_ns;
  }

  // True if a process may have gone on after its snapshot. It was stuck if the snapshot was taken
  // long enough after the other one's call, on its own clock.
  bool may_have_gone_on(const Process& p, const Process& other, std::int64_t called_ns) const {
    if (!p.snapshot) return false;
    const auto doubt = clock_doubt_ns(other, p, case_.lines);
    return !doubt || end_ns(p) - *doubt - stuck_after_ns_ < called_ns;
  }

  // The last of these to call on each host, and when.
  using LastToCall = std::map<std::string_view, std::pair<std::int64_t, const Process*>>;
  LastToCall last_to_call(const Members& members) const {
    LastToCall of_host;
    for (const Member* m : members) {
      const std::pair call(called_ns(*m), m->process);
      auto& last = of_host.try_emplace(m->process->header.boot_id, call).first->second;
      if (last.first < call.first) last = call;
    }
    return of_host;
  }
  bool may_have_gone_on(const Process& p, const LastToCall& calls) const {
    return std::ranges::any_of(calls, [&](const auto& host) {
      return may_have_gone_on(p, *host.second.second, host.second.first);
    });
  }

  // True if somebody is past this call, and its snapshot is too old to show that it did not return.
  bool may_have_returned(const OpenCall& call) {
    if (call.communicator == nullptr || !call.seq) return false;
    if (!call.collective) {
      const auto key = key_of(call);
      const Member* other = key ? other_end(*call.communicator, *call.member, *key) : nullptr;
      if (other == nullptr ||
          calls_of(*other, key_of_other_end(*call.member, *key, *other)).value_or(0) <= *call.seq)
        return false;
      const Process& p = *other->process;
      return may_have_gone_on(*call.process, p, idle_since_ns(p, case_.lines).value_or(end_ns(p)));
    }
    const auto [further, fresh] = further_.try_emplace({call.communicator, *call.seq});
    if (fresh) further->second = last_to_call(who_did(*call.communicator, *call.seq));
    return may_have_gone_on(*call.process, further->second);
  }

  // Finds the first collective that not all members have called. Those that came to it wait for
  // those that did not, on the device or inside the call.
  void wait_for_absent(const Communicator& c) {
    Members known;
    for (const Member& m : c.members) {
      if (m.done != nullptr && m.process->end != End::lost) known.push_back(&m);
    }
    if (std::ranges::all_of(known, &Member::closed)) return;
    Missed missed{.communicator = &c, .seq = UINT64_MAX};
    for (const Member* m : known) missed.seq = std::min(missed.seq, came_to(*m));
    for (const Member* m : known) {
      if (came_to(*m) > missed.seq) {
        missed.came.push_back(m);
      } else if (!on_its_way(*m->process)) {
        missed.absent.push_back(m);
      }
    }
    if (std::ranges::any_of(missed.absent, [](const Member* m) { return m->process->snapshot; })) {
      const LastToCall calls = last_to_call(missed.came);
      std::erase_if(missed.absent,
                    [&](const Member* m) { return may_have_gone_on(*m->process, calls); });
    }
    // If all got equally far, nobody waits, unless for ranks of which nothing is known.
    if (missed.came.empty() || missed.absent.empty()) return;
    missed.called = finder_.find(missed.came, missed.seq);
    add(std::move(missed));
  }

  // Returns how many messages a member came to; nullopt if not known.
  std::optional<std::uint64_t> calls_of(const Member& m, const ChannelKey& key) const {
    const auto* operations = case_.lines.of<Operations>(m.process);
    return operations == nullptr ? std::nullopt : operations->calls(key);
  }

  // True if what the process did not call it will not: it closed, or stands still as all do.
  // Messages are in flight whenever a job is killed.
  bool will_not_come(const Process& p) {
    if (!quiet_) quiet_ = quiet_ns(case_.job.processes, case_.lines).value_or(0);
    return p.end == End::closed || is_as_of_now(p) || *quiet_ > kStandsNs;
  }

  // Finds the first message to or from each other member of which only this one has called its end.
  void wait_for_other_ends(const Communicator& c, const Member& me) {
    const auto* operations = case_.lines.of<Operations>(me.process);
    if (operations == nullptr || me.closed()) return;
    const std::int64_t number = me.comm->comm;
    for (auto of = operations->channels.lower_bound({number, 0, false});
         of != operations->channels.end() && of->first.comm == number; ++of) {
      const auto& [key, channel] = *of;
      const Member* other = other_end(c, me, key);
      if (other == nullptr || channel.captured) continue;
      const auto theirs = calls_of(*other, key_of_other_end(me, key, *other));
      if (!theirs || channel.calls <= *theirs || on_its_way(*other->process)) continue;
      const OpenCall* open = entered(me.process, key);
      if (open == nullptr && !will_not_come(*other->process)) continue;
      if (open != nullptr && open->seq != theirs) open = nullptr;
      const Operation* message = operations->find(key, *theirs);
      if (open == nullptr && message == nullptr) continue;
      Missed missed{.communicator = &c,
                    .seq = *theirs,
                    .came = {&me},
                    .absent = {other},
                    .open = open,
                    .message = key,
                    .operation = message};
      const std::int64_t since = missed.called_ns();
      if (may_have_gone_on(*other->process, *me.process,
                           since == INT64_MAX ? end_ns(*me.process) : since)) {
        continue;
      }
      add(std::move(missed));
    }
  }

  void add(Missed missed) {
    for (const Member* m : missed.came) {
      if (!m->closed()) waits_.on.try_emplace(m->process, waits_.missed.size());
    }
    waits_.missed.push_back(std::move(missed));
  }

  const Case& case_;
  CallFinder finder_{case_};
  std::int64_t stuck_after_ns_;
  // The last of the open calls.
  std::map<std::pair<const Process*, ChannelKey>, const OpenCall*> entered_;
  std::optional<std::int64_t> quiet_;  // for how long nobody made a call
  // For each collective of a communicator, the last to call it among those that returned.
  std::map<std::pair<const Communicator*, std::uint64_t>, LastToCall> further_;
  Waits waits_;
};

}  // namespace

std::int64_t OpenCall::stood_ns() const {
  return since_ns ? std::max<std::int64_t>(end_ns(*process) - *since_ns, 0) : 0;
}

std::int64_t Missed::called_ns() const {
  for (const OpenCall* call : {open, life}) {
    if (call != nullptr) return call->since_ns.value_or(INT64_MAX);
  }
  const auto since = [](const Member& m, std::int64_t ts_ns) {
    return m.process->header.base_time_ns + ts_ns;
  };
  if (operation != nullptr) return since(*came[0], operation->ts_ns);
  return called ? since(*called->by, called->event.ts_ns) : INT64_MAX;
}

Waits waits_of(const Case& c) {
  return Finder(c).run();
}

}  // namespace tprof::diagnose
