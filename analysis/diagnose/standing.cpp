#include "diagnose/standing.h"

#include <fmt/format.h>

#include <algorithm>

#include "collect/collectors.h"
#include "diagnose/ends.h"

namespace tprof::diagnose {
namespace {

using read::End;
using read::Process;

// The NVTX ranges that a thread has pushed and not popped: "step 12" / "attention".
struct RangePath {
  std::int64_t thread = 0;
  bool other_thread = false;  // not the thread of its open or last call
  std::string text{};
  std::size_t ranges = 0;
  std::int64_t since_ns = 0;  // CLOCK_REALTIME when the innermost began
  Processes processes{};      // those with this path
};

// Returns one path per thread, first that of the thread of its open or last call.
std::vector<RangePath> range_paths(const Process& p, const collect::Lines& lines,
                                   const OpenCall* call) {
  std::vector<RangePath> paths;
  const auto* calls = lines.of<collect::LastCalls>(&p);
  if (calls == nullptr) return paths;
  std::optional<std::int64_t> its_thread;
  if (calls->last) its_thread = calls->last->thread;
  if (call != nullptr) its_thread = call->thread;
  for (const read::Range& range : lines.of<collect::OpenRanges>(&p)->ranges) {  // outermost first
    auto path = std::ranges::find(paths, range.thread, &RangePath::thread);
    if (path == paths.end()) {
      path = paths.insert(its_thread == range.thread ? paths.begin() : paths.end(),
                          {range.thread, its_thread && its_thread != range.thread});
    }
    path->text += fmt::format("{}\"{}\"{}", path->ranges++ == 0 ? "" : " / ", range.name,
                              range.domain ? " (" + *range.domain + ")" : "");
    path->since_ns = p.header.base_time_ns + range.ts_ns;
  }
  return paths;
}

std::string text_of(const RangePath& path) {
  const bool one = path.processes.size() == 1;
  std::string text = fmt::format("{} {} within NVTX range{} {}{}{}", names_of(path.processes),
                                 is_or_was(path.processes), path.ranges == 1 ? "" : "s", path.text,
                                 path.ranges == 1 ? "" : " (innermost last)",
                                 path.other_thread ? " on another thread" : "");
  if (!one) return text;
  if (path.other_thread) text += fmt::format(" ({})", path.thread);
  return text + since(*path.processes[0], path.since_ns);
}

// Adds the paths of a few threads, merging equal ones.
void add_ranges(const Case& c, const Waits& waits, const Processes& who, Finding& f) {
  std::vector<RangePath> places;
  for (const Process* p : who) {
    for (const RangePath& path : range_paths(*p, c.lines, waits.open_call(p))) {
      const auto same = std::ranges::find_if(places, [&](const RangePath& other) {
        return other.text == path.text && other.other_thread == path.other_thread;
      });
      (same != places.end() ? *same : places.emplace_back(path)).processes.push_back(p);
    }
  }
  std::vector<std::string> texts;
  for (const RangePath& path : places) texts.push_back(text_of(path));
  shorten(texts, 6);
  const Facts facts = as_is(texts);
  f.evidence.insert(f.evidence.end(), facts.begin(), facts.end());
}

std::string last_call(const Process& p, const collect::Lines& lines) {
  const auto idle_since = idle_since_ns(p, lines);
  if (!idle_since) {
    return "which call of " + name_of(p) + " was the last to return, its lines do not tell";
  }
  return fmt::format("the last call of {} that returned: {}; {} {}", name_of(p),
                     describe(*lines.of<collect::LastCalls>(&p)->last, p),
                     p.snapshot              ? "until its snapshot it made none for"
                     : p.end == End::running ? "it runs, and made none for"
                                             : "it ended after another",
                     duration(end_ns(p) - *idle_since));
}

}  // namespace

std::string name_of(const OpenCall& call) {
  std::string text = call.function;
  if (call.communicator == nullptr) return text;
  if (call.collective && call.seq) text += fmt::format(", collective {}", *call.seq);
  if (!call.collective && call.peer) text += fmt::format(" with its rank {}", *call.peer);
  if (!call.collective && call.seq) text += fmt::format(" (number {})", *call.seq);
  return text + " of communicator " + call.communicator->id;
}

std::string inside(const OpenCall& call) {
  const Process& p = *call.process;
  return fmt::format("{} {} inside {}{}", name_of(p), is_or_was({&p}), name_of(call),
                     call.since_ns ? since(p, *call.since_ns) : "");
}

std::string callers(const Missed& m) {
  if (m.open != nullptr) return inside(*m.open);
  const std::string text = fmt::format("{} called collective {} of communicator {}",
                                       names_of(m.came), m.seq, m.communicator->id);
  if (!m.called) return text;
  const Process& by = *m.called->by->process;
  return text + fmt::format("; {}: {}", name_of(by), describe(m.called->event, by));
}

void add_standing(const Case& c, const Waits& waits, const Processes& who, Finding& f) {
  add_ranges(c, waits, who, f);
  if (c.lines.of<collect::LastCalls>(who[0]) != nullptr) {
    f.evidence.push_back(as_is(last_call(*who[0], c.lines)));
  }
  f.next = as_is(where_to_look(*who[0]));
}

}  // namespace tprof::diagnose
