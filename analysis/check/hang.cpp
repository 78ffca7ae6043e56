// Finds where a job is held up that hangs or was killed: which ranks the others wait for.
//
// NCCL calls return when the work is enqueued. So this is the hosts' view: which ranks called a
// collective, and which calls did not return. If every rank has called, look at devices and
// network.
#include <algorithm>
#include <set>

#include "check/deadlock.h"
#include "check/ends.h"
#include "check/names.h"
#include "check/standing.h"
#include "check/stuck.h"
#include "tables/totals.h"

namespace tprof::check {

namespace {

using read::End;
using read::Process;

// In a healthy job, too, a host may wait seconds for its device between two calls.
constexpr std::int64_t kQuietNs = 10'000'000'000;

// Ranks that are inside the same call, or that missed the same one.
struct Place {
  const OpenCall* call = nullptr;  // null: in no call
  const Missed* missed = nullptr;
  Processes who{};

  bool same(const Place& other) const {
    if (call == nullptr || other.call == nullptr) {
      return call == other.call && missed == other.missed;
    }
    return call->communicator == other.call->communicator && call->seq == other.call->seq &&
           call->function == other.call->function && call->made() == other.call->made();
  }
};

// Says so if no rank made a call of this function, type and size on this communicator before.
std::optional<Fact> only_such_call(const Missed& m) {
  if (!m.called || m.called->event.bytes == 0 || m.seq == 0) return std::nullopt;
  const tables::OpKey such = tables::op_of(m.called->event, *m.called->by->process);
  for (const Member& member : m.communicator->members) {
    tables::Ops ops;
    tables::add_ops(ops, *member.process);
    if (ops[such].calls != (member.did(m.seq) ? 1 : 0)) return std::nullopt;
  }
  return Fact{Say::only_such_call,
              {{"function", such.name}, {"size", SizeClass{such.bytes_class}}, {"who", m.came}}};
}

// True if the call was open for longer than calls of a working process are.
bool long_open(const OpenCall* call) {
  return call != nullptr && call->stood_ns() >= kHangNs;
}

bool all_ended(const Processes& who, End end) {
  return std::ranges::all_of(who, [&](const Process* p) { return p->end == end; });
}

class HeldUp {
 public:
  HeldUp(const Case& c, Findings& found) : case_(c), waits_(waits_of(c)), found_(found) {}

  // Adds a finding for each place where the job is held up.
  void find() {
    const std::size_t before = found_.size();
    const std::vector<Place> held_up = places();
    for (const Place& place : held_up) {
      place.call != nullptr ? add_inside(place) : add_absent(place);
    }
    if (held_up.empty() && !waits_.on.empty()) add_deadlock();
    if (std::ranges::none_of(found_, keeps_from_going_on)) add_devices();
    lead_with_stopped(case_, before, found_);
    if (found_.size() != before) add_limits(found_[before]);
  }

 private:
  // Returns the places of ranks that others wait for and that wait for nobody. If no rank is
  // missed, returns the places of all open calls. Their order is the job's, whatever order files
  // were read in.
  std::vector<Place> places() const {
    std::vector<Place> places;
    for (const Process* p : case_.job.processes) {
      const OpenCall* call = waits_.open_call(p);
      const bool held_up =
          waits_.absent.empty()
              ? call != nullptr && !killed_at_work(*p, case_)
              : waits_.absent.contains(p) && !waits_.on.contains(p) && !waits_.fronts.contains(p);
      if (!held_up) continue;
      const Place mine{call, first_missed(p)};
      const auto known =
          std::ranges::find_if(places, [&](const Place& place) { return place.same(mine); });
      (known != places.end() ? *known : places.emplace_back(mine)).who.push_back(p);
    }
    return places;
  }

  // Returns the earliest call that the process missed.
  const Missed* first_missed(const Process* p) const {
    const std::vector<const Missed*> all = waits_.missed_by(p);
    return all.empty() ? nullptr : *std::ranges::min_element(all, {}, &Missed::called_ns);
  }

  // Returns the call that is open longest, preferring processes of this host. Null if there is
  // none, or its time is not known.
  const OpenCall* longest(const Processes& processes, const std::string& boot_id = "") const {
    const OpenCall* most = nullptr;
    std::pair<bool, std::int64_t> far(false, -1);
    for (const Process* p : processes) {
      const OpenCall* call = waits_.open_call(p);
      if (call == nullptr || !call->since_ns) continue;
      const std::pair stood(p->header.boot_id == boot_id, call->stood_ns());
      if (stood > far) most = call, far = stood;
    }
    return most;
  }

  // True if the process runs, or lived for long without a call, or while another one was inside
  // `call`. A process that ended did not hang, however long others waited for it afterwards.
  bool stood_still(const Process& p, const OpenCall* call) const {
    if (is_as_of_now(p) || p.end == End::closed) return is_as_of_now(p);
    if (idle_ns(p, case_).value_or(0) >= kQuietNs) return true;
    if (!long_open(call) || !call->since_ns) return false;
    const auto doubt = clock_doubt_ns(*call->process, p, case_);
    return doubt && end_ns(p) - *call->since_ns - *doubt >= kHangNs;
  }

  // Returns how long all of these had made no call when their traces ended.
  std::optional<Ns> made_none_for(const Processes& who) const {
    std::int64_t least = INT64_MAX;
    for (const Process* p : who) {
      const auto idle = idle_ns(*p, case_);
      if (!idle || p->end == End::dumped) return std::nullopt;
      least = std::min(least, *idle);
    }
    return Ns{least};
  }

  // True if the process is inside a copy that began about when another process left with work
  // undone.
  bool left_alone(const Process& p) const {
    const auto since = waits_.open_call(&p)->since_ns;
    return since && std::ranges::any_of(gone_, [&](const Process* q) {
             if (q == &p || !ended_before(*q, p, case_)) return false;
             const std::int64_t doubt = clock_doubt_ns(p, *q, case_).value_or(0);
             // A process that closed long before may have had no work left.
             const bool at_once = *since - doubt - kHangNs < latest_ns(*q);
             return *since + kHangNs >= end_ns(*q) - doubt && (q->end == End::recovered || at_once);
           });
  }

  Finding& add(bool hang, const Processes& who, Fact text, const Communicator* communicator,
               std::optional<std::uint64_t> seq, const std::string& function,
               const Facts& evidence) {
    Finding& f = check::add(found_, hang ? Kind::hang : Kind::stopped, who);
    f.text = std::move(text);
    if (communicator != nullptr) f.communicator = communicator->id;
    f.seq = seq;
    f.function = function;
    f.evidence = evidence;
    add_standing(case_, waits_, who, f);
    return f;
  }

  void add_inside(const Place& place) {
    const auto& [open, missed, who] = place;
    const OpenCall& call = *open;
    const Communicator* comm = call.communicator;
    const Missed* meeting = call.meeting;
    const bool running = call.process->end == End::running;
    const bool copy = comm == nullptr && call.life == nullptr;
    const bool alone =
        copy && std::ranges::any_of(who, [&](const Process* p) { return left_alone(*p); });
    const bool hang = long_open(longest(who)) && !alone;
    const bool collective = comm != nullptr && call.collective;
    const bool everybody = meeting != nullptr
                               ? who.size() == meeting->ranks
                               : collective && who.size() == comm->members.size() &&
                                     who.size() == static_cast<std::size_t>(comm->nranks);
    const bool nobody_missing =
        everybody &&
        (comm == nullptr || !communicators_of(found_, {Kind::mismatch}).contains(comm->id));
    Fact text{Say::stand_inside,
              {{"who", who},
               {"everybody", everybody && who.size() > 1},
               {"call", standing_in(call)},
               {"ended", !running},
               {"hung_or_killed", !running && !hang && !call.since_ns},
               {"killed", !running && !hang && !alone && call.since_ns.has_value()}}};
    set_since(text, call);
    // If the ranks were inside for different times, none is told.
    const bool alike = std::ranges::all_of(who, [&](const Process* p) {
      return std::abs(waits_.open_call(p)->stood_ns() - call.stood_ns()) * 20 <= call.stood_ns();
    });
    if (!alike) set(text, {"before_end", std::nullopt});
    Facts evidence;
    Processes returned;
    if (collective && call.seq) returned = processes_of(who_did(*comm, *call.seq));
    if (meeting != nullptr) returned = meeting->returned;
    if (!returned.empty()) evidence.push_back({Say::returned_to, {{"who", returned}}});
    if (meeting != nullptr && meeting->missing != 0 && missed == nullptr) {
      evidence.push_back(
          {Say::not_all_came, {{"missing", meeting->missing}, {"ranks", meeting->ranks}}});
    }
    if (nobody_missing) evidence.push_back({Say::nobody_missing, {{"hang", hang}}});
    if (!running && !call.since_ns) evidence.push_back({Say::lines_tell_how_long});
    if (missed != nullptr) evidence.push_back(callers(*missed));
    if (missed != nullptr && comm == nullptr && running) {
      evidence.push_back({Say::may_wait_for_device});
    }
    Finding& f = add(hang, who, std::move(text), comm, call.seq, call.function, evidence);
    if (call.life != nullptr) f.communicator = communicator_of(*call.process, *call.life);
    if (nobody_missing && hang) f.next = Fact{Say::look_at_network};
  }

  void add_absent(const Place& place) {
    const Missed& m = *place.missed;
    const Processes& who = place.who;
    const OpenCall* stood = m.open != nullptr ? m.open : longest(m.came, who[0]->header.boot_id);
    const bool hang =
        std::ranges::any_of(who, [](const Process* p) { return is_as_of_now(*p); }) ||
        std::ranges::all_of(who, [&](const Process* p) { return stood_still(*p, stood); });
    const Fact then = how_absent(m, who, hang, stood);
    Facts evidence;
    if (!m.of_message()) evidence.push_back(callers(m));
    if (m.of_message() && m.came[0]->end != End::dumped)
      evidence.push_back(ends_of_messages(m, who));
    if (then.what == Say::stood_still) {
      if (auto only = only_such_call(m)) evidence.push_back(*std::move(only));
    }
    if (!m.of_message() && m.open == nullptr && stood != nullptr)
      evidence.push_back(inside(*stood));
    Finding& f = add(hang, who, not_come(m, who, then), m.communicator,
                     m.of_life() ? std::nullopt : std::optional(m.seq),
                     m.of_message() ? m.other_end() : m.function(), evidence);
    if (m.of_life()) f.communicator = communicator_of(*m.open->process, *m.open->life);
    if (!m.of_message() && then.what != Say::closed_before && who[0]->end != End::dumped) {
      f.evidence.push_back({Say::in_no_call, {{"who", who[0]}}});
    }
  }

  // Says what the absent ranks did.
  Fact how_absent(const Missed& m, const Processes& who, bool hang, const OpenCall* stood) const {
    if (std::ranges::any_of(who, &Process::snapshot)) return {Say::runs_unknown};
    if (all_ended(who, End::closed)) return {Say::closed_before, {{"status", exit_status_of(who)}}};
    if (!hang) return {Say::stopped_there};
    Fact still{Say::stood_still, {{"who", who}, {"quiet", made_none_for(who)}}};
    // Hosts run ahead of devices: a host that is behind may wait for its device, and that for
    // others. This is excluded if the others are inside the very call.
    const bool in_it =
        m.of_message() || m.of_life() ||
        (stood != nullptr && stood->communicator == m.communicator && stood->seq == m.seq);
    if (in_it) return still;
    // A host does not wait for its device if that has ended all that the others called.
    const auto reads = [&](const Process* p) {
      return !has_all_ends(*p) && idle_since_ns(*p, case_) &&
             case_.calls(*p).last->bucket == Bucket::D2H;
    };
    set(still, {"reads", std::ranges::all_of(who, reads)});
    return still;
  }

  // Dumps have no messages that ended.
  static Fact ends_of_messages(const Missed& m, const Processes& who) {
    return {Say::ends_of_messages,
            {{"who", m.came},
             {"sent", m.end->key.send},
             {"calls", m.end->numbers().calls},
             {"other", who},
             {"theirs", m.seq}}};
  }

  void add_deadlock() {
    const Deadlock deadlock = deadlock_of(waits_, case_.job.processes);
    if (deadlock.who.empty()) return;
    Facts each;
    Facts evidence;
    for (const auto& [on, here] : deadlock.places) {
      const Missed& m = *on;
      const OpenCall* call = waits_.open_call(here[0]);
      const Fact where = call != nullptr
                             ? standing_in(*call)
                             : Fact{m.of_message() ? Say::message_of : Say::collective_of,
                                    {{"seq", m.seq},
                                     {"communicator", m.communicator->id},
                                     {"sent", m.of_message() && m.end->key.send},
                                     {"who", here[0]},
                                     {"other", m.absent[0]}}};
      each.push_back({Say::waits_in, {{"who", here}, {"call", where}}});
      evidence.push_back(
          {Say::waits_for,
           {{"called", call != nullptr ? inside(*call) : callers(m)}, {"who", m.absent}}});
    }
    shorten(each, 8);
    shorten(evidence, 8);
    // A working process may be killed between two calls, but not if no rank made a call for long.
    const bool stand =
        std::ranges::any_of(deadlock.who, [](const Process* p) { return is_as_of_now(*p); }) ||
        long_open(longest(deadlock.who)) || stood_ns(deadlock.who, case_);
    const Missed& first = *deadlock.places[0].on;
    Finding& f = add(stand, deadlock.odd,
                     {Say::wait_for_each_other, {{"who", deadlock.who}, {"each", each}}},
                     first.communicator, first.seq, first.function(), evidence);
    f.next = Fact{Say::same_order};
  }

  void add_devices() {
    const std::vector<Stuck> all = stuck_calls(case_, waits_);
    if (all.empty()) return add_oldest();
    Facts facts;
    std::set<const Process*> named;
    for (const Stuck& s : all) {
      const Processes& held_up = s.idle.empty() ? s.who : s.idle;
      named.insert(held_up.begin(), held_up.end());
      facts.push_back({Say::devices_stand,
                       {{"who", s.who},
                        {"some", !s.idle.empty()},
                        {"idle", s.idle},
                        {"function", s.call->function},
                        {"message", s.call->message()},
                        {"seq", s.call->seq},
                        {"communicator", s.communicator->id}}});
    }
    Fact first = facts.front();
    facts.erase(facts.begin());
    shorten(facts, 8);
    const Stuck& s = all[0];
    Finding& f =
        add(true, select(case_.job.processes, [&](const Process& p) { return named.contains(&p); }),
            std::move(first), s.communicator, s.call->seq, s.call->function, facts);
    f.severity = Severity::warning;  // somebody may have asked for the dumps of a job that ran
    if (s.idle.empty()) f.next = Fact{Say::look_at_network};
  }

  // A dump is written when a call has timed out: then one did not end, whatever it waits for.
  void add_oldest() {
    const Process* who = nullptr;
    const auto called_ns = [&](const Process* p) {
      return p->header.base_time_ns + waits_.fronts.at(p)->ts_ns;
    };
    for (const Process* p : case_.job.processes) {
      if (p->end != End::dumped || !waits_.fronts.contains(p)) continue;
      if (who == nullptr || called_ns(p) < called_ns(who)) who = p;
    }
    if (who == nullptr || !case_.job.missing.empty() || !case_.older.who.empty()) return;
    const Operation& call = *waits_.fronts.at(who);
    const std::string& comm =
        case_.communicators[case_.membership(*who, call.comm)->communicator].id;
    check::add(found_, Kind::unended, {},
               {{"who", who},
                {"function", call.function},
                {"message", call.message()},
                {"seq", call.seq},
                {"communicator", comm},
                {"since", Time{called_ns(who)}}});
  }

  // Adds what is not known, whatever the place.
  void add_limits(Finding& f) const {
    const Processes& all = case_.job.processes;
    const auto say = [&](Say what, const auto& who) {
      if (!who.empty()) f.evidence.push_back({what, {{"who", who}}});
    };
    const auto ended = [&](End end) {
      return select(all, [&](const Process& p) { return p.end == end; });
    };
    say(Say::did_not_close, ended(End::recovered));
    say(Say::end_unknown, ended(End::lost));
    say(Say::end_unknown, ended(End::partial));
    const Processes snapshots = select(all, [](const Process& p) { return p.snapshot; });
    if (!snapshots.empty()) f.evidence.push_back(unknown_after(snapshots));
    say(Say::nothing_known, text::Ranks(case_.job.missing));
    const Processes dumped = ended(End::dumped);
    say(Say::dumps_tell, dumped);
    if (dumped.size() < all.size()) f.evidence.push_back({Say::hosts_view});
  }

  const Case& case_;
  const Waits waits_;
  // The first processes that ended: they may have left others waiting.
  const Processes gone_ = earliest_of(select(case_.job.processes, [](const Process& p) {
    return !p.comms.empty() && (p.end == End::closed || p.end == End::recovered);
  }));
  Findings& found_;
};

void hangs(const Case& c, Findings& found) {
  HeldUp(c, found).find();
}

}  // namespace

extern const Diagnosis kHang{kCheck | kStands, hangs};

}  // namespace tprof::check
