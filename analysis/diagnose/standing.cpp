#include "diagnose/standing.h"

#include <algorithm>

#include "diagnose/ends.h"
#include "diagnose/last_calls.h"

namespace tprof::diagnose {
namespace {

constexpr std::int64_t kAtOnceNs = 1'000;

using read::End;
using read::Process;

// The NVTX ranges that a thread has pushed and not popped: "step 12" / "attention".
struct RangePath {
  std::int64_t thread = 0;
  bool other_thread = false;  // not the thread of its open or last call
  Facts ranges{};
  std::int64_t since_ns = 0;  // CLOCK_REALTIME when the innermost began
  Processes processes{};      // those with this path
};

// Returns one path per thread, first that of the thread of its open or last call.
std::vector<RangePath> range_paths(const Process& p, const SeenLines& lines, const OpenCall* call) {
  std::vector<RangePath> paths;
  const auto* calls = lines.of<LastCalls>(&p);
  if (calls == nullptr) return paths;
  std::optional<std::int64_t> its_thread;
  if (calls->last) its_thread = calls->last->thread;
  if (call != nullptr) its_thread = call->thread;
  for (const read::Range& range : lines.of<OpenRanges>(&p)->ranges) {  // outermost first
    auto path = std::ranges::find(paths, range.thread, &RangePath::thread);
    if (path == paths.end()) {
      path = paths.insert(its_thread == range.thread ? paths.begin() : paths.end(),
                          {range.thread, its_thread && its_thread != range.thread});
    }
    path->ranges.push_back({Say::range_named, {{"name", range.name}, {"domain", range.domain}}});
    path->since_ns = p.header.base_time_ns + range.ts_ns;
  }
  return paths;
}

Fact within(const RangePath& path) {
  Fact fact{Say::within_ranges,
            {{"who", path.processes},
             {"ranges", path.ranges.size()},
             {"path", path.ranges},
             {"other_thread", path.other_thread},
             {"thread", std::nullopt},
             {"since", std::nullopt},
             {"before_end", std::nullopt}}};
  if (path.processes.size() != 1) return fact;
  if (path.other_thread) set(fact, {"thread", path.thread});
  set(fact, {"since", Time{path.since_ns}});
  set(fact, {"before_end", before_end(*path.processes[0], path.since_ns)});
  return fact;
}

// Adds the paths of a few threads, merging equal ones.
void add_ranges(const Case& c, const Waits& waits, const Processes& who, Finding& f) {
  std::vector<RangePath> places;
  for (const Process* p : who) {
    for (const RangePath& path : range_paths(*p, c.lines, waits.open_call(p))) {
      const auto same = std::ranges::find_if(places, [&](const RangePath& other) {
        return other.ranges == path.ranges && other.other_thread == path.other_thread;
      });
      (same != places.end() ? *same : places.emplace_back(path)).processes.push_back(p);
    }
  }
  Facts facts;
  for (const RangePath& path : places) facts.push_back(within(path));
  shorten(facts, 6);
  f.evidence.insert(f.evidence.end(), facts.begin(), facts.end());
}

Fact last_call(const Process& p, const SeenLines& lines) {
  const auto idle_since = idle_since_ns(p, lines);
  if (!idle_since) return {Say::last_call_unknown, {{"who", &p}}};
  const Ns none_for = before_end(p, *idle_since);
  const bool lives = p.snapshot || p.end == End::running;
  const bool at_once = !lives && none_for.n < kAtOnceNs;
  const bool closed = p.end == End::closed;
  return {Say::last_call,
          {{"who", &p},
           {"call", fact_of(*lines.of<LastCalls>(&p)->last, p)},
           {"snapshot", p.snapshot},
           {"runs", !p.snapshot && p.end == End::running},
           {"lives", lives},
           {"ended", !lives && closed},
           {"heard", !lives && !closed && !at_once},
           {"not_again", !closed && at_once},
           {"none_for", at_once ? std::nullopt : std::optional(none_for)},
           {"at_once", closed && at_once}}};
}

// From when the first of them stands in its call, or made none, to where their traces end.
std::optional<TimeRange> time_of(const Case& c, const Waits& waits, const Processes& who) {
  std::optional<TimeRange> time;
  for (const Process* p : who) {
    const OpenCall* call = waits.open_call(p);
    const auto since = call != nullptr ? call->since_ns : idle_since_ns(*p, c.lines);
    if (!since) continue;
    const TimeRange mine{*since, std::max(*since, end_ns(*p))};
    if (!time) time = mine;
    time = {std::min(time->from_ns, mine.from_ns), std::max(time->to_ns, mine.to_ns)};
  }
  return time;
}

}  // namespace

Fact fact_of(const OpenCall& call) {
  const bool known = call.communicator != nullptr;
  const auto number = [&](bool shown) { return known && shown ? call.seq : std::nullopt; };
  const bool ended = call.life != nullptr && call.life->grouped;
  const std::string made = call.life != nullptr ? call.life->id.str() : "";
  return {Say::open_call,
          {{"function", ended ? "ncclGroupEnd with " + call.function : call.function},
           {"collective", number(call.collective)},
           {"peer", known && !call.collective ? call.peer : std::nullopt},
           {"number", number(!call.collective)},
           {"communicator", known          ? std::optional(call.communicator->id)
                            : made.empty() ? std::nullopt
                                           : std::optional(made)}}};
}

void set_since(Fact& fact, const OpenCall& call) {
  if (!call.since_ns) return;
  const Ns before = before_end(*call.process, *call.since_ns);
  set(fact, {"since", Time{*call.since_ns}});
  if (before.n >= kAtOnceNs) set(fact, {"before_end", before});
}

Fact inside(const OpenCall& call) {
  const Process& p = *call.process;
  Fact fact{Say::inside,
            {{"who", &p},
             {"call", fact_of(call)},
             {"since", std::nullopt},
             {"before_end", std::nullopt}}};
  set_since(fact, call);
  return fact;
}

Fact callers(const Missed& m, const Case& c) {
  if (m.open != nullptr) return inside(*m.open);
  if (m.life != nullptr) {
    Fact all = inside(*m.life);
    set(all, {"who", who_of(m.came)});
    return all;
  }
  const Process& first = *m.came[0]->process;
  if (m.operation != nullptr) {
    return fact_of(*m.operation, *c.lines.of<Operations>(&first), first, *m.absent[0]->process);
  }
  Fact fact{Say::called,
            {{"who", who_of(m.came)},
             {"seq", m.seq},
             {"communicator", m.communicator->id},
             {"by", std::nullopt},
             {"call", std::nullopt}}};
  if (!m.called) return fact;
  const Process& by = *m.called->by->process;
  set(fact, {"by", &by});
  set(fact, {"call", fact_of(m.called->event, by)});
  return fact;
}

void add_standing(const Case& c, const Waits& waits, const Processes& who, Finding& f) {
  add_ranges(c, waits, who, f);
  if (who[0]->end != End::dumped && c.lines.of<LastCalls>(who[0]) != nullptr) {
    f.evidence.push_back(last_call(*who[0], c.lines));
  }
  f.time = time_of(c, waits, who);
  f.next = where_to_look(*who[0], idle_since_ns(*who[0], c.lines));
}

}  // namespace tprof::diagnose
