// Finds where a job that did not end in order was held up: who waits for whom, and who waits for
// nobody.
//
// NCCL calls return when the work is enqueued. So this is the host's view: who called a collective
// and who never did, and which calls did not return. If every rank has called, the device or the
// network is the place to look.
#include <algorithm>
#include <set>

#include "diagnose/device_waits.h"
#include "diagnose/ends.h"
#include "diagnose/exited.h"
#include "diagnose/last_calls.h"
#include "diagnose/left_alone.h"
#include "diagnose/mismatch.h"
#include "diagnose/process_state.h"
#include "diagnose/standing.h"
#include "stats/totals.h"

namespace tprof::diagnose {
namespace {

using read::End;
using read::Process;

// A process may be killed inside a call that takes microseconds: that is not a hang.
constexpr std::int64_t kHangNs = 1'000'000'000;
// Between calls, a host may wait seconds for its device in a healthy job too.
constexpr std::int64_t kQuietNs = 10'000'000'000;

// Ranks that are inside the same call, or that did not come to the same one.
struct Place {
  const OpenCall* call = nullptr;  // null: in no call
  const Missed* missed = nullptr;
  Processes who{};

  bool same(const Place& other) const {
    if (call == nullptr || other.call == nullptr) {
      return call == other.call && missed == other.missed;
    }
    return call->communicator == other.call->communicator && call->seq == other.call->seq &&
           call->function == other.call->function && made() == other.made();
  }
  std::string made() const { return call->life == nullptr ? "" : call->life->id.str(); }
};

// Tells if it is the first call of its function, type and size on its communicator, on all ranks.
std::optional<Fact> only_such_call(const Missed& m) {
  if (!m.called || m.called->event.bytes == 0) return std::nullopt;
  const stats::OpKey such = stats::op_of(m.called->event, *m.called->by->process);
  for (const Member& member : m.communicator->members) {
    stats::Ops ops;
    stats::add_ops(ops, *member.process);
    if (ops[such].calls != (member.did(m.seq) ? 1 : 0)) return std::nullopt;
  }
  return Fact{
      Say::only_such_call,
      {{"function", such.name}, {"size", SizeClass{such.bytes_class}}, {"who", who_of(m.came)}}};
}

class HeldUp {
 public:
  HeldUp(const Case& c, Findings& found) : case_(c), waits_(waits_of(c)), found_(found) {
    for (const Missed& m : waits_.missed) {
      for (const Member* absent : m.absent) missed_[absent->process].push_back(&m);
    }
  }

  // Adds one finding per place at which the job is held up.
  void find() {
    const std::size_t before = found_.size();
    const std::vector<Place> held_up = places();
    for (const Place& place : held_up) {
      place.call != nullptr ? add_inside(place) : add_absent(place);
    }
    if (held_up.empty() && !waits_.on.empty()) add_cycle();
    if (std::ranges::none_of(found_, keeps_from_going_on)) add_devices();
    lead_with_stopped(case_, before, found_);
    if (found_.size() != before) add_limits(found_[before]);
  }

 private:
  // Returns the places of ranks that somebody waits for and that wait for nobody. If nobody waits,
  // returns those of all open calls. They are in the order of the job, which does not depend on how
  // the files were read.
  std::vector<Place> places() const {
    Processes roots = select(case_.job.processes, [&](const Process& p) {
      return missed_.contains(&p) && !waits_.on.contains(&p);
    });
    if (roots.empty() && waits_.on.empty()) {
      roots = select(case_.job.processes, [&](const Process& p) { return waits_.open_call(&p); });
    }
    std::vector<Place> places;
    for (const Process* p : roots) {
      const Place mine{waits_.open_call(p), first_missed(p)};
      const auto known =
          std::ranges::find_if(places, [&](const Place& place) { return place.same(mine); });
      (known != places.end() ? *known : places.emplace_back(mine)).who.push_back(p);
    }
    return places;
  }

  // Returns the earliest call among those that the process missed.
  const Missed* first_missed(const Process* p) const {
    const auto all = missed_.find(p);
    if (all == missed_.end()) return nullptr;
    return *std::ranges::min_element(all->second, {}, &Missed::called_ns);
  }

  // Returns the open call that has been open longest among these, preferring processes on this
  // host. Null if there is none, or if it is not known for how long.
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

  // True if it was open for longer than a kill inside the call would explain.
  static bool long_open(const OpenCall* call) {
    return call != nullptr && call->stood_ns() >= kHangNs;
  }

  // True if the process runs, or lived on for long without a call, or while somebody was inside
  // `call`. A process that ended did not hang, however long the others waited for it afterwards.
  bool stood_still(const Process& p, const OpenCall* call) const {
    if (is_as_of_now(p) || p.end == End::closed) return is_as_of_now(p);
    const auto idle_since = idle_since_ns(p, case_.lines);
    if (idle_since && end_ns(p) - *idle_since >= kQuietNs) return true;
    if (!long_open(call) || !call->since_ns) return false;
    const auto doubt = clock_doubt_ns(p, *call->process, case_.lines);
    return doubt && end_ns(p) - *call->since_ns - *doubt >= kHangNs;
  }

  // How long each of these had made no call when its trace ended.
  std::optional<Ns> made_none_for(const Processes& who) const {
    std::int64_t least = INT64_MAX;
    for (const Process* p : who) {
      const auto idle_since = idle_since_ns(*p, case_.lines);
      if (!idle_since || p->end == End::dumped) return std::nullopt;
      least = std::min(least, end_ns(*p) - *idle_since);
    }
    return Ns{least};
  }

  bool left_alone(const Processes& who) const {
    const LeftAlone left(case_, waits_);
    return std::ranges::all_of(who, [&](const Process* p) { return left.holds(*p, kHangNs); });
  }

  Finding& add(bool hang, const Processes& who, Fact text, const Communicator* communicator,
               std::optional<std::uint64_t> seq, const std::string& function) {
    Finding& f = diagnose::add(found_, hang ? Kind::hang : Kind::stopped, who);
    f.text = std::move(text);
    if (communicator != nullptr) f.communicator = communicator->id;
    f.seq = seq;
    f.function = function;
    add_standing(case_, waits_, who, f);
    return f;
  }

  static void lead_with(const Facts& evidence, Finding& f) {
    f.evidence.insert(f.evidence.begin(), evidence.begin(), evidence.end());
  }

  // True if the ranks stood in their calls for about as long as in this one.
  bool stood_alike(const Processes& who, const OpenCall& call) const {
    const auto stood = [](const OpenCall* its) {
      return its != nullptr && its->since_ns ? its->stood_ns() : 0;
    };
    return std::ranges::all_of(who, [&](const Process* p) {
      return std::abs(stood(waits_.open_call(p)) - stood(&call)) * 20 <= stood(&call);
    });
  }

  void add_inside(const Place& place) {
    const auto& [open, missed, who] = place;
    const OpenCall& call = *open;
    const Communicator* comm = call.communicator;
    const bool running = call.process->end == End::running;
    const bool alone = comm == nullptr && call.life == nullptr && left_alone(who);
    const bool hang = long_open(longest(who)) && !alone;
    const bool collective = comm != nullptr && call.collective;
    const LifeMeeting* meeting = call.meeting ? &*call.meeting : nullptr;
    const bool everybody = meeting != nullptr
                               ? who.size() == meeting->ranks
                               : collective && who.size() == comm->members.size() &&
                                     who.size() == static_cast<std::size_t>(comm->nranks);
    Fact text{Say::stand_inside,
              {{"who", who},
               {"everybody", everybody && who.size() > 1},
               {"call", fact_of(call)},
               {"since", std::nullopt},
               {"before_end", std::nullopt},
               {"ended", !running},
               {"hung_or_killed", !running && !hang && !call.since_ns},
               {"killed", !running && !hang && !alone && call.since_ns.has_value()}}};
    set_since(text, call);
    if (!stood_alike(who, call)) set(text, {"before_end", std::nullopt});
    Finding& f = add(hang, who, std::move(text), comm, call.seq, call.function);
    Facts evidence;
    if (collective && call.seq) {
      const Members returned = who_did(*comm, *call.seq);
      if (!returned.empty()) evidence.push_back({Say::returned_to, {{"who", who_of(returned)}}});
    }
    if (call.life != nullptr) f.communicator = communicator_of(*call.process, *call.life);
    if (meeting != nullptr && !meeting->returned.empty()) {
      evidence.push_back({Say::returned_to, {{"who", meeting->returned}}});
    }
    if (meeting != nullptr && meeting->missing != 0 && missed == nullptr) {
      evidence.push_back(
          {Say::not_all_came, {{"missing", meeting->missing}, {"ranks", meeting->ranks}}});
    }
    if (everybody && (comm == nullptr || !different(found_).contains(comm->id))) {
      evidence.push_back({Say::nobody_missing, {{"hang", hang}}});
      if (hang) f.next = Fact{Say::look_at_network};
    }
    if (!running && !call.since_ns) evidence.push_back({Say::lines_tell_how_long});
    if (missed != nullptr) evidence.push_back(callers(*missed, case_));
    if (missed != nullptr && comm == nullptr && running) {
      evidence.push_back({Say::may_wait_for_device});
      look_at_both(*missed, f);
    }
    lead_with(evidence, f);
  }

  void add_absent(const Place& place) {
    const auto& [none, missed, who] = place;
    const Missed& m = *missed;
    const OpenCall* stood =
        m.open != nullptr ? m.open : longest(processes_of(m.came), who[0]->header.boot_id);
    const bool hang =
        std::ranges::any_of(who, [](const Process* p) { return is_as_of_now(*p); }) ||
        std::ranges::all_of(who, [&](const Process* p) { return stood_still(*p, stood); });
    const bool closed = select(who, [](const Process& p) { return p.end != End::closed; }).empty();
    const Processes seen = select(who, [](const Process& p) { return p.snapshot; });
    const std::string function = m.called ? m.called->event.name : "";
    Fact then{!seen.empty() ? Say::runs_unknown
              : closed      ? Say::closed_before
              : hang        ? Say::stood_still
                            : Say::stopped_there};
    if (then.what == Say::closed_before) then.values = {{"status", exit_status_of(who)}};
    const bool stood_still = then.what == Say::stood_still;
    if (m.life != nullptr) {
      if (stood_still) {
        then.values = {{"who", who}, {"quiet", made_none_for(who)}, {"reads", false}};
      }
      Finding& f = add(hang, who, not_come(m, who, then), m.communicator, {}, m.life->function);
      f.communicator = communicator_of(*m.life->process, *m.life->life);
      lead_with({callers(m, case_)}, f);
      if (!closed) add_in_no_call(*who[0], f);
      return;
    }
    // Hosts run ahead: who is behind in calls may wait for what another's device does not do.
    // Not so where those that came stand in the very call.
    const bool in_it =
        m.message.has_value() ||
        (stood != nullptr && stood->communicator == m.communicator && stood->seq == m.seq);
    const bool ran_ahead = stood_still && !in_it;
    const auto devices = ran_ahead ? devices_before(m, who) : std::nullopt;
    const bool waits = ran_ahead && (devices || may_wait_for_device(m, who));
    if (stood_still) {
      then.values = {{"who", who},
                     {"quiet", made_none_for(who)},
                     {"seq", devices},
                     {"reads", waits && !devices}};
      if (devices) then.what = Say::devices_not_through;
    }
    if (m.message) return add_end_of_message(m, who, hang, std::move(then));
    Finding& f =
        add(hang, who,
            {Say::never_came,
             {{"who", who},
              {"until", seen.empty() ? std::nullopt : std::optional(Time{oldest_ns(seen)})},
              {"seq", m.seq},
              {"function", function},
              {"communicator", m.communicator->id},
              {"came", who_of(m.came)},
              {"then", then}}},
            m.communicator, m.seq, function);
    Facts evidence{callers(m, case_)};
    if (auto only = stood_still && m.seq != 0 ? only_such_call(m) : std::nullopt)
      evidence.push_back(*std::move(only));
    if (stood != nullptr) evidence.push_back(inside(*stood));
    lead_with(evidence, f);
    if (!closed) add_in_no_call(*who[0], f);
    if (devices) f.ranks = ranks_of(processes_of(m.communicator->members));
    if (waits) look_at_both(m, f);
  }

  static void add_in_no_call(const Process& p, Finding& f) {
    if (p.end != End::dumped) f.evidence.push_back({Say::in_no_call, {{"who", &p}}});
  }

  void add_end_of_message(const Missed& m, const Processes& who, bool hang, Fact then) {
    const bool sent = m.message->send;
    const std::string never = sent ? "ncclRecv" : "ncclSend";
    Finding& f =
        add(hang, who,
            {Say::never_made_other_end,
             {{"who", who},
              {"function", never},
              {"called", callers(m, case_)},
              {"then", m.open != nullptr ? std::nullopt : std::optional(std::move(then))}}},
            m.communicator, m.seq, never);
    Processes others;
    for (const Missed* missed : missed_.at(who[0])) {
      const Process* p = missed->came[0]->process;
      if (missed->message && std::ranges::find(others, p) == others.end()) others.push_back(p);
    }
    if (others.size() > 1)
      lead_with({{Say::have_messages_for, {{"who", others}, {"other", who}}}}, f);
    const Process& other = *m.came[0]->process;
    if (other.end == End::dumped) return;  // of messages that ended it does not tell
    const auto* operations = case_.lines.of<Operations>(&other);
    lead_with({{Say::ends_of_messages,
                {{"who", &other},
                 {"sent", sent},
                 {"calls", operations->channels.at(*m.message).calls},
                 {"other", who},
                 {"theirs", m.seq}}}},
              f);
  }

  // Returns the first collective that devices are not through with though all came to it; nullopt
  // if there is none, or if these miss others too, which devices may stand behind.
  std::optional<std::uint64_t> devices_before(const Missed& m, const Processes& who) const {
    if (std::ranges::any_of(who, [&](const Process* p) { return missed_.at(p).size() != 1; })) {
      return std::nullopt;
    }
    const auto at = devices_at(*m.communicator, case_);
    return at && *at < m.seq ? at : std::nullopt;
  }

  // Hosts wait for no device that is known to be through with all that others came to.
  bool may_wait_for_device(const Missed& m, const Processes& who) const {
    return !devices_at(*m.communicator, case_) &&
           std::ranges::all_of(who, [&](const Process* p) { return reads_from_device(*p, case_); });
  }

  // Adds the stack of one that came to what the finding's first rank looks at.
  void look_at_both(const Missed& m, Finding& f) const {
    const Process* other = longest_quiet(m.came, case_);
    if (other == nullptr || !f.next || f.next->what != Say::look_at_stack) return;
    set(*f.next, {"other", other});
    set(*f.next, {"other_pid", other->header.pid});
    set(*f.next, {"other_host", place_of_pid(other->header)});
  }

  // Returns a cycle of waits. There is one, since everybody who waits waits for somebody who waits.
  Processes cycle() const {
    Processes path;
    const Process* p = *std::ranges::find_if(
        case_.job.processes, [&](const Process* waiting) { return waits_.on.contains(waiting); });
    for (auto again = path.end(); again == path.end(); again = std::ranges::find(path, p)) {
      path.push_back(p);
      p = waits_.missed[waits_.on.at(p)].absent[0]->process;
    }
    path.erase(path.begin(), std::ranges::find(path, p));
    const auto least = std::ranges::min_element(
        path, {}, [](const Process* q) { return q->header.rank.value_or(INT64_MAX); });
    std::rotate(path.begin(), least, path.end());
    return path;
  }

  // One may be killed at work between two calls. Where nobody made a call for long, nobody could.
  bool all_stand(const Processes& path) const {
    if (std::ranges::any_of(path, [](const Process* p) { return is_as_of_now(*p); })) return true;
    const auto quiet = quiet_ns(path, case_.lines);
    return long_open(longest(path)) || (quiet && *quiet > kStandsNs);
  }

  void add_cycle() {
    const Processes path = cycle();
    const Missed& first = waits_.missed[waits_.on.at(path[0])];
    Facts each;
    Facts evidence;
    for (const Process* p : path) {
      const Missed& m = waits_.missed[waits_.on.at(p)];
      const OpenCall* call = waits_.open_call(p);
      const Fact where = call != nullptr ? fact_of(*call)
                                         : Fact{m.message ? Say::message_of : Say::collective_of,
                                                {{"seq", m.seq},
                                                 {"communicator", m.communicator->id},
                                                 {"sent", m.message && m.message->send},
                                                 {"who", p},
                                                 {"other", m.absent[0]->process}}};
      each.push_back({Say::waits_in, {{"who", p}, {"call", where}}});
      evidence.push_back({Say::waits_for,
                          {{"called", call != nullptr ? inside(*call) : callers(m, case_)},
                           {"who", m.absent[0]->process}}});
    }
    Finding& f =
        add(all_stand(path), path, {Say::wait_for_each_other, {{"who", path}, {"each", each}}},
            first.communicator, first.seq,
            first.open != nullptr        ? first.open->function
            : first.operation != nullptr ? first.operation->function.str()
            : first.called               ? first.called->event.name.str()
                                         : "");
    lead_with(evidence, f);
    f.next = Fact{Say::same_order};
  }

  // Dumps tell of a collective that all have called and no device has ended: the one called first.
  void add_devices() {
    const Operation* first = nullptr;
    const Communicator* where = nullptr;
    std::int64_t first_ns = INT64_MAX;
    for (const Communicator& comm : case_.communicators) {
      const auto at = devices_at(comm, case_);
      const Member& m = comm.members[0];
      const bool all = comm.members.size() == static_cast<std::size_t>(comm.nranks);
      if (!at || !all || !m.dumped() || who_did(comm, *at).size() != comm.members.size()) continue;
      const Operation* call = case_.lines.of<Operations>(m.process)->find({m.comm->comm}, *at);
      if (call == nullptr || m.process->header.base_time_ns + call->ts_ns >= first_ns) continue;
      first_ns = m.process->header.base_time_ns + call->ts_ns;
      first = call;
      where = &comm;
    }
    if (first == nullptr) return;
    const Processes who = processes_of(where->members);
    Finding& f = add(true, who,
                     {Say::devices_stand,
                      {{"who", who},
                       {"function", first->function},
                       {"seq", first->seq},
                       {"communicator", where->id}}},
                     where, first->seq, first->function);
    f.severity = Severity::warning;  // somebody may have asked for the dumps of a job that ran
    f.next = Fact{Say::look_at_network};
  }

  // Adds the limits that hold for every place.
  void add_limits(Finding& f) const {
    const Processes& all = case_.job.processes;
    const auto ended = [&](End end) {
      return select(all, [&](const Process& p) { return p.end == end; });
    };
    const Processes killed = ended(End::recovered);
    const Processes snapshots = select(all, [](const Process& p) { return p.snapshot; });
    const auto say = [&](Say what, const auto& who) {
      if (!who.empty()) f.evidence.push_back({what, {{"who", who}}});
    };
    say(Say::did_not_close, killed);
    say(Say::end_unknown, ended(End::lost));
    say(Say::end_unknown, ended(End::partial));
    if (!snapshots.empty()) f.evidence.push_back(unknown_after(snapshots));
    say(Say::nothing_known, text::Ranks(case_.job.missing));
    const Processes dumped = ended(End::dumped);
    say(Say::dumps_tell, dumped);
    if (dumped.size() < all.size()) f.evidence.push_back({Say::hosts_view});
  }

  const Case& case_;
  const Waits waits_;
  Findings& found_;
  std::map<const Process*, std::vector<const Missed*>> missed_;
};

void hangs(const Case& c, Findings& found) {
  HeldUp(c, found).find();
}

}  // namespace

extern const Diagnosis kHang{kCheck, hangs};

}  // namespace tprof::diagnose
