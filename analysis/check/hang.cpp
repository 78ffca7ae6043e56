// Finds where a job that did not end in order was held up: who waits for whom, and who waits for
// nobody.
//
// NCCL calls return when the work is enqueued. So this is the host's view: who called a collective
// and who never did, and which calls did not return. If every rank has called, the device or the
// network is the place to look.
#include <algorithm>

#include "check/ends.h"
#include "check/names.h"
#include "check/waits.h"
#include "tables/totals.h"

namespace tprof::check {

namespace {

constexpr std::int64_t kAtOnceNs = 1'000;

using read::End;
using read::Process;

// The NVTX ranges that a thread has pushed and not popped: "step 12" / "attention".
struct Within {
  bool other_thread = false;  // not that of its open or last call
  std::int64_t thread = 0;
  Facts ranges{};
  std::int64_t since_ns = 0;  // CLOCK_REALTIME when the innermost began
  Processes who{};
};

// Returns those of each thread, the one of its open or last call first.
std::vector<Within> ranges_of(const Process& p, const Case& c, const OpenCall* call) {
  const auto& calls = c.calls(p);
  std::optional<std::int64_t> its_thread;
  if (calls.last) its_thread = calls.last->thread;
  if (call != nullptr) its_thread = call->thread;
  std::map<std::pair<bool, std::int64_t>, Within> threads;
  for (const read::Range& range : calls.ranges) {  // outermost first
    const bool other = its_thread && *its_thread != range.thread;
    Within& in = threads[{other, range.thread}];
    in.other_thread = other;
    in.thread = range.thread;
    in.ranges.push_back({Say::range_named, {{"name", range.name}, {"domain", range.domain}}});
    in.since_ns = p.header.base_time_ns + range.ts_ns;
  }
  std::vector<Within> all;
  for (auto& [thread, in] : threads) all.push_back(std::move(in));
  return all;
}

// Adds those of a few threads, equal ones once.
void add_ranges(const Case& c, const Waits& waits, const Processes& who, Finding& f) {
  std::vector<Within> places;
  for (const Process* p : who) {
    for (Within& in : ranges_of(*p, c, waits.open_call(p))) {
      const auto same = std::ranges::find_if(places, [&](const Within& w) {
        return w.other_thread == in.other_thread && w.ranges == in.ranges;
      });
      (same != places.end() ? *same : places.emplace_back(std::move(in))).who.push_back(p);
    }
  }
  Facts facts;
  for (const Within& in : places) {
    facts.push_back({Say::within_ranges,
                     {{"who", in.who},
                      {"ranges", in.ranges.size()},
                      {"path", in.ranges},
                      {"other_thread", in.other_thread}}});
    Fact& fact = facts.back();
    if (in.who.size() != 1) continue;
    if (in.other_thread) set(fact, {"thread", in.thread});
    set(fact, {"since", Time{in.since_ns}});
    set(fact, {"before_end", before_end(*in.who[0], in.since_ns)});
  }
  shorten(facts, 6);
  f.evidence.insert(f.evidence.end(), facts.begin(), facts.end());
}

Fact last_call(const Process& p, const Case& c) {
  const auto idle_since = idle_since_ns(p, c);
  if (!idle_since) return {Say::last_call_unknown, {{"who", &p}}};
  return {Say::last_call,
          {{"who", &p},
           {"call", fact_of(*c.calls(p).last, p)},
           {"lives", p.end == End::running},
           {"none_for", before_end(p, *idle_since)}}};
}

// From when the first of them stands in its call, or made none, to where their traces end.
std::optional<TimeRange> time_of(const Case& c, const Waits& waits, const Processes& who) {
  std::optional<TimeRange> time;
  for (const Process* p : who) {
    const OpenCall* call = waits.open_call(p);
    const auto since = call != nullptr ? call->since_ns : idle_since_ns(*p, c);
    if (since) time = joined(time, {*since, std::max(*since, end_ns(*p))});
  }
  return time;
}

// "ncclAllReduce, collective 13 of communicator a3df…"
Fact standing_in(const OpenCall& call) {
  const bool known = call.communicator != nullptr;
  const bool group_ends = call.life != nullptr && call.life->grouped;
  Fact fact{Say::open_call,
            {{"function", group_ends ? "ncclGroupEnd with " + call.function : call.function}}};
  if (!known && !call.made().empty()) set(fact, {"communicator", call.made()});
  if (!known) return fact;
  set(fact, {"communicator", call.communicator->id});
  if (call.collective) {
    set(fact, {"collective", call.seq});
  } else {
    set(fact, {"number", call.seq});
    set(fact, {"peer", call.peer});
  }
  return fact;
}

// Sets since when the call was open, and how long before the end of the trace that is, if it is
// known.
void set_since(Fact& fact, const OpenCall& call) {
  if (!call.since_ns) return;
  const Ns before = before_end(*call.process, *call.since_ns);
  set(fact, {"since", Time{*call.since_ns}});
  if (before.n >= kAtOnceNs) set(fact, {"before_end", before});
}

// "rank 3 was inside ncclAllReduce, … since …"
Fact inside(const OpenCall& call) {
  Fact fact{Say::inside, {{"who", call.process}, {"call", standing_in(call)}}};
  set_since(fact, call);
  return fact;
}

// Says who made the call that somebody missed.
Fact callers(const Missed& m) {
  if (m.open != nullptr) {
    Fact in_it = inside(*m.open);
    if (m.of_life()) set(in_it, {"who", m.came});
    return in_it;
  }
  if (m.operation != nullptr) return fact_of(*m.end, *m.operation, *m.absent[0]);
  Fact fact{Say::called, {{"who", m.came}, {"seq", m.seq}, {"communicator", m.communicator->id}}};
  if (!m.called) return fact;
  const Process& by = *m.called->by->process;
  set(fact, {"by", &by});
  set(fact, {"call", fact_of(m.called->event, by)});
  return fact;
}

// Says that these have not come to what others wait in, or were refused there, and what they did.
Fact not_come(const Missed& m, const Processes& who, const Fact& then) {
  Fact fact{Say::never_came, {{"who", who}, {"came", m.came}, {"then", then}}};
  const Processes seen = select(who, [](const Process& p) { return p.snapshot; });
  if (!seen.empty()) set(fact, {"until", Time{oldest_ns(seen)}});
  if (m.of_message()) {
    fact.what = Say::never_made_other_end;
    set(fact, {"function", m.other_end()});
    set(fact, {"called", callers(m)});
    if (m.open != nullptr) set(fact, {"then", std::nullopt});
  } else if (m.of_life()) {
    const bool which = m.absent.size() <= m.missing;
    fact.what = m.refused != 0 ? Say::got_back : which ? Say::not_come : Say::some_not_come;
    set(fact, {"call", standing_in(*m.open)});
    set(fact, {"missing", m.missing});
    set(fact, {"error", nccl_error(m.refused)});
    if (m.open->since_ns) set(fact, {"since", Time{*m.open->since_ns}});
  } else {
    set(fact, {"seq", m.seq});
    set(fact, {"function", m.function()});
    set(fact, {"communicator", m.communicator->id});
  }
  return fact;
}

// Adds evidence of where in the program these are and what the first of them did last, and says
// since when they stand there and what to do next.
void add_standing(const Case& c, const Waits& waits, const Processes& who, Finding& f) {
  add_ranges(c, waits, who, f);
  if (who[0]->end != End::dumped && c.has_lines(*who[0])) {
    f.evidence.push_back(last_call(*who[0], c));
  }
  f.time = time_of(c, waits, who);
  f.next = where_to_look(*who[0], idle_since_ns(*who[0], c));
}

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
           call->function == other.call->function && call->made() == other.call->made();
  }
};

// Tells if it is the first call of its function, type and size on its communicator, on all ranks.
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

// True if the call was open for longer than a kill inside it would explain.
bool long_open(const OpenCall* call) {
  return call != nullptr && call->stood_ns() >= kHangNs;
}

bool all_ended(const Processes& who, End end) {
  return std::ranges::all_of(who, [&](const Process* p) { return p->end == end; });
}

class HeldUp {
 public:
  HeldUp(const Case& c, Findings& found) : case_(c), waits_(waits_of(c)), found_(found) {
    for (const Missed& m : waits_.missed) {
      for (const Process* absent : m.absent) missed_[absent].push_back(&m);
    }
  }

  // Adds one finding per place at which the job is held up.
  void find() {
    const std::size_t before = found_.size();
    const std::vector<Place> held_up = places();
    for (const Place& place : held_up) {
      place.call != nullptr ? add_inside(place) : add_absent(place);
    }
    if (held_up.empty() && !waits_.on.empty()) add_circle();
    if (std::ranges::none_of(found_, keeps_from_going_on)) add_devices();
    lead_with_stopped(case_, before, found_);
    if (found_.size() != before) add_limits(found_[before]);
  }

 private:
  // Returns the places of ranks that somebody waits for and that wait for nobody. If nobody is
  // missed, returns those of all open calls. They are in the order of the job, which does not
  // depend on how the files were read.
  std::vector<Place> places() const {
    std::vector<Place> places;
    for (const Process* p : case_.job.processes) {
      const OpenCall* call = waits_.open_call(p);
      const bool held_up = missed_.empty() ? call != nullptr && !killed_at_work(*p, case_)
                                           : missed_.contains(p) && !waits_.on.contains(p) &&
                                                 !waits_.fronts.contains(p);
      if (!held_up) continue;
      const Place mine{call, first_missed(p)};
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

  // True if the process runs, or lived on for long without a call, or while somebody was inside
  // `call`. A process that ended did not hang, however long the others waited for it afterwards.
  bool stood_still(const Process& p, const OpenCall* call) const {
    if (is_as_of_now(p) || p.end == End::closed) return is_as_of_now(p);
    if (idle_ns(p, case_).value_or(0) >= kQuietNs) return true;
    if (!long_open(call) || !call->since_ns) return false;
    const auto doubt = clock_doubt_ns(*call->process, p, case_);
    return doubt && end_ns(p) - *call->since_ns - *doubt >= kHangNs;
  }

  // How long each of these had made no call when its trace ended.
  std::optional<Ns> made_none_for(const Processes& who) const {
    std::int64_t least = INT64_MAX;
    for (const Process* p : who) {
      const auto idle = idle_ns(*p, case_);
      if (!idle || p->end == End::dumped) return std::nullopt;
      least = std::min(least, *idle);
    }
    return Ns{least};
  }

  // True if the process stands in a copy that had not stood for long when somebody else ended, with
  // work left undone.
  bool left_alone(const Process& p) const {
    const auto since = waits_.open_call(&p)->since_ns;
    return since && std::ranges::any_of(gone_, [&](const Process* q) {
             if (q == &p || !ended_before(*q, p, case_)) return false;
             const std::int64_t doubt = clock_doubt_ns(p, *q, case_).value_or(0);
             // One that closed long before may have been through.
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
        copy && std::ranges::all_of(who, [&](const Process* p) { return left_alone(*p); });
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
    // Where the ranks stood for different times, that of the first says nothing of the others.
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

  // Says what these did that did not come.
  Fact how_absent(const Missed& m, const Processes& who, bool hang, const OpenCall* stood) const {
    if (std::ranges::any_of(who, &Process::snapshot)) return {Say::runs_unknown};
    if (all_ended(who, End::closed)) return {Say::closed_before, {{"status", exit_status_of(who)}}};
    if (!hang) return {Say::stopped_there};
    Fact still{Say::stood_still, {{"who", who}, {"quiet", made_none_for(who)}}};
    // Hosts run ahead: who is behind in calls may wait for what another's device does not do.
    // Not so where those that came stand in the very call.
    const bool in_it =
        m.of_message() || m.of_life() ||
        (stood != nullptr && stood->communicator == m.communicator && stood->seq == m.seq);
    if (in_it) return still;
    // Hosts wait for no device that is known to be through with all that others came to.
    const auto reads = [&](const Process* p) {
      return !has_all_ends(*p) && idle_since_ns(*p, case_) &&
             case_.calls(*p).last->bucket == Bucket::D2H;
    };
    set(still, {"reads", std::ranges::all_of(who, reads)});
    return still;
  }

  // A dump does not tell of messages that ended.
  static Fact ends_of_messages(const Missed& m, const Processes& who) {
    return {Say::ends_of_messages,
            {{"who", m.came},
             {"sent", m.end->key.send},
             {"calls", m.end->numbers().calls},
             {"other", who},
             {"theirs", m.seq}}};
  }

  // Returns the ranks that this one waits for, and that these wait for, and so on.
  std::set<const Process*> waited_for(const Process* p) const {
    std::set<const Process*> all;
    std::set<const Missed*> seen;
    for (Processes open{p}; !open.empty();) {
      const auto on = waits_.on.find(open.back());
      open.pop_back();
      if (on == waits_.on.end() || !seen.insert(on->second).second) continue;
      for (const Process* other : on->second->absent) {
        if (all.insert(other).second) open.push_back(other);
      }
    }
    return all;
  }
  // Returns the ranks that wait for this one, and that wait for these.
  std::set<const Process*> waiting_for(const Process* p) const {
    std::set<const Process*> all;
    for (Processes open{p}; !open.empty();) {
      const auto missed = missed_.find(open.back());
      open.pop_back();
      if (missed == missed_.end()) continue;
      for (const Missed* m : missed->second) {
        for (const Process* other : m->came) {
          const auto on = waits_.on.find(other);
          const bool waits = on != waits_.on.end() && on->second == m;
          if (waits && all.insert(other).second) open.push_back(other);
        }
      }
    }
    return all;
  }

  // Returns ranks that all wait for each other, and for nobody else; empty: who waits does so for a
  // device.
  Processes circle() const {
    const Process* p = waits_.on.begin()->first;
    while (true) {
      const std::set<const Process*> all = waited_for(p);
      const auto waits = [&](const Process* other) { return waits_.on.contains(other); };
      if (!std::ranges::all_of(all, waits)) return {};
      const std::set<const Process*> behind = waiting_for(p);
      const auto further =
          std::ranges::find_if(all, [&](const Process* other) { return !behind.contains(other); });
      if (further == all.end() && all.contains(p)) {
        return select(case_.job.processes, [&](const Process& q) { return all.contains(&q); });
      }
      p = further == all.end() ? *all.begin() : *further;
    }
  }

  using Places = std::vector<std::pair<const Missed*, Processes>>;

  // Returns the rank that has a part in each of several messages without their other end; else all.
  static Processes odd_one(const Places& places) {
    Processes all;
    std::map<const Process*, std::size_t> ends;
    std::size_t messages = 0;
    for (const auto& [on, here] : places) {
      all.insert(all.end(), here.begin(), here.end());
      if (!on->of_message()) continue;
      ++messages;
      ++ends[on->came[0]];
      ++ends[on->absent[0]];
    }
    const auto in_each = [&](const Process* p) {
      const auto its = ends.find(p);
      return its != ends.end() && its->second == messages;
    };
    const auto odd = std::ranges::find_if(all, in_each);
    const bool one = messages > 1 && std::ranges::count_if(all, in_each) == 1;
    return one ? Processes{*odd} : all;
  }

  void add_circle() {
    const Processes who = circle();
    if (who.empty()) return;
    Places places;
    for (const Process* p : who) {
      const Missed* on = waits_.on.at(p);
      const auto same =
          std::ranges::find(places, on, [](const auto& place) { return place.first; });
      (same != places.end() ? *same : places.emplace_back(on, Processes())).second.push_back(p);
    }
    Facts each;
    Facts evidence;
    for (const auto& [on, here] : places) {
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
    // If there are two places, the ranks at one of them did not do what most did.
    Processes named = odd_one(places);
    if (places.size() == 2 && places[0].second.size() != places[1].second.size()) {
      const bool first_few = places[0].second.size() < places[1].second.size();
      named = places[first_few ? 0 : 1].second;
    }
    shorten(each, 8);
    shorten(evidence, 8);
    // One may be killed at work between two calls. Where nobody made a call for long, nobody could.
    const bool stand =
        std::ranges::any_of(who, [](const Process* p) { return is_as_of_now(*p); }) ||
        long_open(longest(who)) || stood_ns(who, case_);
    const Missed& first = *places[0].first;
    Finding& f = add(stand, named, {Say::wait_for_each_other, {{"who", who}, {"each", each}}},
                     first.communicator, first.seq, first.function(), evidence);
    f.next = Fact{Say::same_order};
  }

  // Calls at which the devices of all stand whom they take, and which these have not ended: nobody
  // waits there for another.
  struct Stuck {
    const Operation* call = nullptr;
    const Communicator* communicator = nullptr;
    Processes who{};
    std::int64_t called_ns = 0;
  };
  std::optional<Stuck> stuck_at(const Process& p, const Operation& call) const {
    const Membership& in = *case_.membership(p, call.comm);
    const Communicator& comm = case_.communicators[in.communicator];
    Stuck stuck{&call, &comm, {}, p.header.base_time_ns + call.ts_ns};
    std::size_t parts = 0;
    for (const Member& m : comm.members) {
      if (call.message() && &m != in.member && m.comm->rank != call.peer) continue;
      ++parts;
      if (!call.message() && case_.calls(*m.process).is_through(m.comm->comm, call.seq)) {
        if (call.all_wait()) return std::nullopt;  // a device that did not end it is lost
        continue;
      }
      if (!waits_.fronts.contains(m.process) || waits_.on.contains(m.process)) return std::nullopt;
      stuck.who.push_back(m.process);
    }
    const std::size_t all = call.message() ? 2 : static_cast<std::size_t>(comm.nranks);
    return parts == all ? std::optional(std::move(stuck)) : std::nullopt;
  }

  // Returns the ranks whose devices have not begun it, if others have.
  static Processes not_started(const Stuck& s) {
    Processes idle;
    for (const Member& m : s.communicator->members) {
      const bool here = std::ranges::find(s.who, m.process) != s.who.end();
      if (here && m.dumped() && m.done != nullptr && m.done->started <= s.call->seq) {
        idle.push_back(m.process);
      }
    }
    return s.call->message() || idle.size() == s.who.size() ? Processes() : idle;
  }

  void add_devices() {
    std::vector<Stuck> all;
    std::set<const Process*> who;
    std::set<std::pair<std::size_t, std::uint64_t>> known;  // collectives
    const bool stands = stood_ns(case_.job.processes, case_).has_value();
    for (const Process* p : case_.job.processes) {
      const auto front = waits_.fronts.find(p);
      if (front == waits_.fronts.end() || who.contains(p) || (p->end != End::dumped && !stands)) {
        continue;
      }
      const Operation& call = *front->second;
      const std::size_t comm = case_.membership(*p, call.comm)->communicator;
      if (!call.message() && !known.emplace(comm, call.seq).second) continue;
      auto stuck = stuck_at(*p, call);
      if (!stuck) continue;
      who.insert(stuck->who.begin(), stuck->who.end());
      all.push_back(*std::move(stuck));
    }
    if (all.empty()) return;
    std::ranges::stable_sort(all, {}, &Stuck::called_ns);
    Facts facts;
    for (const Stuck& s : all) {
      const Processes idle = not_started(s);
      for (const Process* p : s.who) {
        if (!idle.empty() && std::ranges::find(idle, p) == idle.end()) who.erase(p);
      }
      facts.push_back({Say::devices_stand,
                       {{"who", s.who},
                        {"some", !idle.empty()},
                        {"idle", idle},
                        {"function", s.call->function},
                        {"message", s.call->message()},
                        {"seq", s.call->seq},
                        {"communicator", s.communicator->id}}});
    }
    Fact first = facts.front();
    facts.erase(facts.begin());
    shorten(facts, 8);
    Finding& f =
        add(true, select(case_.job.processes, [&](const Process& p) { return who.contains(&p); }),
            std::move(first), all[0].communicator, all[0].call->seq, all[0].call->function, facts);
    f.severity = Severity::warning;  // somebody may have asked for the dumps of a job that ran
    if (!not_started(all[0]).empty()) return;
    f.next = Fact{Say::look_at_network};
  }

  // Adds the limits that hold for every place.
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
  // The first that ended, by whom others were left alone.
  const Processes gone_ = earliest_of(select(case_.job.processes, [](const Process& p) {
    return !p.comms.empty() && (p.end == End::closed || p.end == End::recovered);
  }));
  Findings& found_;
  std::map<const Process*, std::vector<const Missed*>> missed_;  // what each did not come to
};

void hangs(const Case& c, Findings& found) {
  HeldUp(c, found).find();
}

}  // namespace

extern const Diagnosis kHang{kCheck | kStands, hangs};

}  // namespace tprof::check
