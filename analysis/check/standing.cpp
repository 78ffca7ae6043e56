#include "check/standing.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "check/ends.h"
#include "check/names.h"

namespace tprof::check {

namespace {

using read::End;
using read::Process;

constexpr std::int64_t kAtOnceNs = 1'000;

// The NVTX ranges that a thread has pushed and not popped: "step 12" / "attention".
struct Within {
  bool other_thread = false;  // not that of its open or last call
  std::int64_t thread = 0;
  Facts ranges{};
  std::int64_t since_ns = 0;  // CLOCK_REALTIME when the innermost began
  Processes who{};
};

// Returns them for each thread; the thread of the open or last call comes first.
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

// Adds the ranges of a few threads. Equal ones are said once.
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

// Returns the time from when the first of them entered its call, or made its last, to the end of
// their traces.
std::optional<TimeRange> time_of(const Case& c, const Waits& waits, const Processes& who) {
  std::optional<TimeRange> time;
  for (const Process* p : who) {
    const OpenCall* call = waits.open_call(p);
    const auto since = call != nullptr ? call->since_ns : idle_since_ns(*p, c);
    if (since) time = joined(time, {*since, std::max(*since, end_ns(*p))});
  }
  return time;
}

}  // namespace

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

void set_since(Fact& fact, const OpenCall& call) {
  if (!call.since_ns) return;
  const Ns before = before_end(*call.process, *call.since_ns);
  set(fact, {"since", Time{*call.since_ns}});
  if (before.n >= kAtOnceNs) set(fact, {"before_end", before});
}

Fact inside(const OpenCall& call) {
  Fact fact{Say::inside, {{"who", call.process}, {"call", standing_in(call)}}};
  set_since(fact, call);
  return fact;
}

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

void add_standing(const Case& c, const Waits& waits, const Processes& who, Finding& f) {
  add_ranges(c, waits, who, f);
  if (who[0]->end != End::dumped && c.has_lines(*who[0])) {
    f.evidence.push_back(last_call(*who[0], c));
  }
  f.time = time_of(c, waits, who);
  f.next = where_to_look(*who[0], idle_since_ns(*who[0], c));
}

}  // namespace tprof::check
