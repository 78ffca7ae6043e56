#include "export/formats.h"

#include "read/error.h"
#include "tables/ranges.h"

namespace tprof::trace_export {
namespace {

using read::Range;

struct Shown {
  Shown(const Exported& exported, const read::Process& p, const Sinks& sinks)
      : of(exported), rank(p), to(sinks) {}

  void timed(const read::Event& e, const read::DeviceTime* t) {
    if (e.chosen) to.call(e, t);
  }
  void thread(const read::ThreadName& t) {
    if (to.thread) to.thread(t);
  }
  void range(const Range& r) {
    switch (r.phase) {
      case Range::Phase::closed:
        return put(r, r.ts_ns, r.ts_ns + r.dur_ns);
      case Range::Phase::mark:
        return put(r, r.ts_ns, {});
      case Range::Phase::started:
        return started.start(r);
      case Range::Phase::open:
        started.end(r);
        return put(r, r.ts_ns, {});
      case Range::Phase::ended:
        return put(r, started.end(r), r.ts_ns);
    }
  }
  void end() {
    for (const auto& [id, r] : started.open()) put(r, r.ts_ns, {});
  }
  void put(const Range& r, Sinks::Moment from_ns, Sinks::Moment to_ns) const {
    if (of.has_range(rank, from_ns.value_or(r.ts_ns))) to.range(r, from_ns, to_ns);
  }

  const Exported& of;
  const read::Process& rank;
  const Sinks& to;
  tables::StartedRanges started{};
};

}  // namespace

void show_lines(const Exported& of, const read::Process& rank, const Sinks& to) {
  job::Job alone;
  alone.processes = {&rank};
  of.lines.of(alone).each([&](const read::Process& p) { return Shown(of, p, to); });
}

void leave_out_unreadable(const run::Lines& lines, std::vector<const read::Process*>& processes,
                          std::vector<read::Skipped>& skipped) {
  std::erase_if(processes, [&](const read::Process* p) { return lines.history(*p) == nullptr; });
  for (const read::Skipped& file : lines.unreadable()) {
    const std::string what = file.reason.substr(0, file.reason.rfind(';'));
    if (processes.empty()) throw read::BadInput(what);
    skipped.push_back({what + "; left out", true});
  }
}

}  // namespace tprof::trace_export
