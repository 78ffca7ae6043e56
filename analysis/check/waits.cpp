#include "check/waits.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "check/ends.h"

namespace tprof::check {

namespace {

using read::End;
using read::Process;

// Returns the channel in which a call is numbered; nullopt if it has no number.
std::optional<ChannelKey> channel_of(const OpenCall& call) {
  if (call.member == nullptr || !call.seq || (!call.collective && !call.peer)) return std::nullopt;
  return ChannelKey{call.member->comm->comm, call.collective ? ChannelKey::kEverybody : *call.peer,
                    call.function == "ncclSend"};
}

class Finder {
 public:
  explicit Finder(const Case& c) : case_(c) {}

  Waits run() {
    for (const Process* p : case_.job.processes) add_open_calls(*p);
    for (const OpenCall& call : waits_.open) {
      waits_.stands_in.try_emplace(call.process, &call);
      const auto key = channel_of(call);
      if (!key) continue;
      const OpenCall*& entered = entered_[{call.process, *key}];
      if (entered == nullptr || *entered->seq < *call.seq) entered = &call;
    }
    for (const Process* p : case_.job.processes) find_front(*p);
    for (const Process* p : case_.job.processes) wait_in_turn(*p);
    for (const Communicator& c : case_.communicators) wait_for_absent(c);
    for (const Channel& channel : case_.channels) {
      if (channel.messages) wait_for_other_end(channel);
    }
    add_life_waits(case_, waits_);
    return std::move(waits_);
  }

 private:
  OpenCall open_call(const Process& p, std::optional<std::int64_t> comm,
                     const std::string& function) const {
    const Membership* in = comm ? case_.membership(p, *comm) : nullptr;
    if (in == nullptr) return {.process = &p, .function = function};
    return {&p, &case_.communicators[in->communicator], in->member, function};
  }

  // A running process is inside some call most of the time, so only long ones count.
  void add_open_calls(const Process& p) {
    if (p.end == End::closed || p.end == End::lost) return;
    if (!case_.has_lines(p)) return add_open_rows(p);
    const RankCalls& calls = case_.calls(p);
    const auto add = [&](const auto& line, const auto& complete) {
      OpenCall call = open_call(p, line.comm, line.name);
      call.since_ns = p.header.base_time_ns + line.ts_ns;
      call.thread = line.thread;
      complete(call);
      const bool short_yet =
          p.end == End::running && end_ns(p) - *call.since_ns < case_.options.stuck_after_ns;
      if (!short_yet && !(p.snapshot && may_have_returned(call))) waits_.open.push_back(call);
    };
    for (const read::Event& e : calls.open) {
      add(e, [&](OpenCall& call) {
        call.collective = e.collective();
        if (e.numbered) call.seq = e.seq;
        call.peer = e.peer;
      });
    }
    for (const read::LifeCall& c : calls.open_life) {
      // Calls in a group take effect when the group ends.
      if (c.group_ends) add(c, [&](OpenCall& call) { call.life = &c; });
    }
  }

  void add_open_rows(const Process& p) {
    if (p.end == End::running) return;
    for (const read::Row& row : read::rows_of(p)) {
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

  // Returns how many collectives it has called.
  std::uint64_t came_to(const Member& m) const {
    const OpenCall* open = entered(m.process, {m.comm->comm});
    return std::max(m.count(), open == nullptr ? 0 : *open->seq + 1);
  }

  // Returns a time by which it had called its last collective of the communicator, on its host's
  // clock.
  std::int64_t called_ns(const Member& m) const {
    const Process& p = *m.process;
    const auto& calls = case_.calls(p);
    for (const read::Event& e : calls.open) {
      if (e.collective() && e.comm == m.comm->comm) return p.header.base_time_ns + e.ts_ns;
    }
    const std::optional<read::Event>& last = calls.on(m.comm->comm).last;
    const bool known = last && last->seq + 1 == m.count();
    return known ? p.header.base_time_ns + last->ts_ns + last->dur_ns : end_ns(p);
  }

  // True if a process may have gone on after its snapshot. It was stuck if the snapshot was taken
  // long enough after the other one's call, on its own clock.
  bool may_have_gone_on(const Process& p, const Process& other, std::int64_t called_ns) const {
    if (!p.snapshot) return false;
    const auto doubt = clock_doubt_ns(other, p, case_);
    return !doubt || end_ns(p) - *doubt - case_.options.stuck_after_ns < called_ns;
  }
  bool may_have_gone_on(const Process& p, const Members& others) const {
    return p.snapshot && std::ranges::any_of(others, [&](const Member* m) {
             return may_have_gone_on(p, *m->process, called_ns(*m));
           });
  }

  // True if another rank is past this call, and the snapshot is too old to show that it did not
  // return.
  bool may_have_returned(const OpenCall& call) const {
    const auto key = channel_of(call);
    if (!key) return false;
    if (call.collective) {
      return may_have_gone_on(*call.process, who_did(*call.communicator, *call.seq));
    }
    const Member* other = member_of(*call.communicator, key->peer);
    if (other == nullptr || other == call.member) return false;
    const Process& p = *other->process;
    const ChannelKey there{other->comm->comm, call.member->comm->rank, !key->send};
    if (case_.calls(p).calls(there).value_or(0) <= *call.seq) return false;
    return may_have_gone_on(*call.process, p, idle_since_ns(p, case_).value_or(end_ns(p)));
  }

  // Finds the oldest call that the rank's device has not ended, if known. Later calls may have to
  // wait for it.
  void find_front(const Process& p) {
    if (p.end == End::closed) return;
    const Operation* front = nullptr;
    for (const Operation& o : case_.calls(p).all) {
      if (front != nullptr && front->ts_ns <= o.ts_ns) continue;
      const Membership* in = case_.membership(p, o.comm);
      if (in != nullptr && is_left(*in->member, o)) front = &o;
    }
    // Outside dumps nobody knows which message of a group a device waits for.
    if (front == nullptr || (front->message() && p.end != End::dumped)) return;
    waits_.fronts[&p] = front;
  }
  bool is_left(const Member& m, const Operation& o) const {
    // A dump has only messages that have not ended.
    if (o.message()) {
      const bool known = o.stream != Operation::kNoStream && has_all_times(*m.process, case_);
      return m.dumped() || (known && !o.ended && o.bytes != 0);
    }
    const auto ended = ended_by(m, case_);
    // If its call has not returned, the host may not have enqueued it.
    return ended && *ended <= o.seq && m.did(o.seq) && (o.bytes != 0 || m.dumped());
  }

  // A device waits in its oldest call for ranks that have not called it, or whose devices are at an
  // older one. If this is known of a rank, it is what the rank waits for. (Some of several messages
  // that are made together may have arrived.)
  void wait_in_turn(const Process& p) {
    const auto front = waits_.fronts.find(&p);
    if (front == waits_.fronts.end()) return;
    const Operation& call = *front->second;
    const Communicator* comm = &case_.communicators[case_.membership(p, call.comm)->communicator];
    // All ranks of a collective wait alike.
    const bool known = !call.message() && !looked_at_.emplace(comm, call.seq).second;
    if (!known && is_alone(call, p)) wait_in(p, call);
  }
  void wait_in(const Process& p, const Operation& call) {
    const Membership& in = *case_.membership(p, call.comm);
    const Communicator& comm = case_.communicators[in.communicator];
    Missed missed{.communicator = &comm, .seq = call.seq};
    Members came;
    Members absent;
    const auto look = [&](const Member& m, const ChannelKey& key) {
      const auto front = waits_.fronts.find(m.process);
      const Operation* at = front == waits_.fronts.end() ? nullptr : front->second;
      const Operation* there = case_.calls(*m.process).find(key, call.seq);
      if (at != nullptr && there == at) return came.push_back(&m);
      if (at != nullptr && there != nullptr && at->ts_ns < there->ts_ns) {
        return absent.push_back(&m);
      }
      const bool away = call.message() ? there == nullptr && m.dumped() && messages_tell()
                                       : m.done != nullptr && !m.did(call.seq);
      if (away && !on_its_way(*m.process, case_)) absent.push_back(&m);
    };
    if (call.message()) {
      missed.operation = &call;
      missed.end = end_of(in, call);
      const Member* other = member_of(comm, call.peer);
      if (missed.end == nullptr || other == nullptr) return;
      look(*other, {other->comm->comm, in.member->comm->rank, !call.send});
      came = {in.member};
    } else {
      for (const Member& m : comm.members) look(m, {m.comm->comm});
      missed.called = find_call(came, call.seq, case_, looks_);
    }
    if (absent.empty()) return;
    missed.came = processes_of(came);
    missed.absent = processes_of(absent);
    waits_.add(std::move(missed));
  }
  bool is_alone(const Operation& call, const Process& p) const {
    return std::ranges::none_of(case_.calls(p).all,
                                [&](const Operation& o) { return &o != &call && o.joins(call); });
  }
  const ChannelEnd* end_of(const Membership& in, const Operation& message) const {
    for (const Channel& channel : case_.channels) {
      if (!channel.messages || !channel.numbered()) continue;
      if (channel.communicator != in.communicator) continue;
      const ChannelEnd& end = channel.ends[message.send ? 0 : 1];
      if (end.member == in.member && end.key == message.channel()) return &end;
    }
    return nullptr;
  }

  // Finds the first collective that not all members have called. The ranks that called it wait for
  // the others, on the device or inside the call.
  void wait_for_absent(const Communicator& c) {
    Members known;
    for (const Member& m : c.members) {
      if (m.done != nullptr && m.process->end != End::lost) known.push_back(&m);
    }
    if (std::ranges::all_of(known, &Member::closed)) return;
    std::uint64_t seq = UINT64_MAX;
    for (const Member* m : known) seq = std::min(seq, came_to(*m));
    Members came;
    Members absent;
    for (const Member* m : known) (came_to(*m) > seq ? came : absent).push_back(m);
    std::erase_if(absent, [&](const Member* m) {
      return on_its_way(*m->process, case_) || may_have_gone_on(*m->process, came);
    });
    // If all known ranks made as many calls, they wait at most for unknown ones.
    if (came.empty() || absent.empty()) return;
    waits_.add({.communicator = &c,
                .seq = seq,
                .came = processes_of(came),
                .absent = processes_of(absent),
                .called = find_call(came, seq, case_, looks_)});
  }

  // Dumps have no messages that ended, so these don't tell whether a dump is older than others.
  bool messages_tell() const { return case_.older.who.empty(); }

  // True if the process will make no further call: it ended before the other one, or no rank makes
  // calls any more. Otherwise its message may be on its way when a job is killed.
  bool will_not_come(const Process& p, const Process& other) {
    if (!stands_) stands_ = stand(case_.job.processes, case_);
    return p.end == End::closed || is_as_of_now(p) || *stands_ || ended_before(p, other, case_);
  }

  // Finds the first message that only one of its two ranks has called.
  void wait_for_other_end(const Channel& channel) {
    if (!messages_tell()) return;
    for (const std::size_t mine : {0, 1}) {
      const ChannelEnd& end = channel.ends[mine];
      const ChannelEnd& other = channel.ends[1 - mine];
      const Process& p = *end.member->process;
      const Process& absent = *other.member->process;
      const auto theirs = other.made();
      if (p.end == End::closed || end.member == other.member || end.numbers().captured ||
          on_its_way(absent, case_) || !theirs || end.numbers().calls <= *theirs) {
        continue;
      }
      const OpenCall* open = entered(&p, end.key);
      if (open == nullptr && !will_not_come(absent, p)) continue;
      Missed missed{.communicator = &case_.communicators[channel.communicator],
                    .seq = *theirs,
                    .came = {&p},
                    .absent = {&absent},
                    .open = open != nullptr && open->seq == theirs ? open : nullptr,
                    .end = &end,
                    .operation = end.number(*theirs)};
      if (missed.open == nullptr && missed.operation == nullptr) continue;
      const std::int64_t since = missed.called_ns();
      if (!may_have_gone_on(absent, p, since == INT64_MAX ? end_ns(p) : since)) {
        waits_.add(std::move(missed));
      }
    }
  }

  const Case& case_;
  int looks_ = kMostLooks;
  // The last of the open calls.
  std::map<std::pair<const Process*, ChannelKey>, const OpenCall*> entered_;
  std::optional<bool> stands_;                                         // once somebody asked
  std::set<std::pair<const Communicator*, std::uint64_t>> looked_at_;  // collectives
  Waits waits_;
};

}  // namespace

std::int64_t OpenCall::stood_ns() const {
  return since_ns ? std::max<std::int64_t>(end_ns(*process) - *since_ns, 0) : 0;
}

std::int64_t Missed::called_ns() const {
  if (open != nullptr) return open->since_ns.value_or(INT64_MAX);
  if (operation != nullptr) return came[0]->header.base_time_ns + operation->ts_ns;
  return called ? check::called_ns(called->event, *called->by->process) : INT64_MAX;
}

std::string Missed::function() const {
  if (open != nullptr) return open->function;
  if (operation != nullptr) return operation->function;
  return called ? called->event.name.str() : "";
}

const Missed& Waits::add(Missed one) {
  const Missed& added = missed.emplace_back(std::move(one));
  for (const Process* p : added.absent) absent[p].push_back(&added);
  if (added.absent.empty()) return added;
  for (const Process* p : added.came) {
    if (p->end != End::closed) on.try_emplace(p, &added);
  }
  return added;
}

bool on_its_way(const Process& p, const Case& c) {
  if (c.older.has(&p)) return true;
  if (p.end != End::running) return false;
  const auto quiet = quiet_ns({&p}, c);
  return !quiet || *quiet < c.options.stuck_after_ns;
}

Waits waits_of(const Case& c) {
  return Finder(c).run();
}

}  // namespace tprof::check
