#include "export/lanes.h"

#include "interpose/format/record.h"

namespace tprof::trace_export {
namespace {

static_assert(kLaneCategory == "LANE");

// Above the lanes of ranges, devices and computation, and below those of other tools.
constexpr std::int64_t kStepsLane = (std::int64_t{1} << 24) - 2;
constexpr std::int64_t kExposedLane = (std::int64_t{1} << 24) - 1;

// Names a lane, and puts it above the threads, which have 0.
void name_lane(std::string_view name, std::int64_t lane, int index, const Placement& to, Pen& out) {
  out.line() << "{\"cat\":\"LANE\",\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":" << to.pid
             << ",\"tid\":" << lane << ",\"args\":{\"name\":\"" << name << "\"}}";
  out.line() << "{\"cat\":\"LANE\",\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":" << to.pid
             << ",\"tid\":" << lane << ",\"args\":{\"sort_index\":" << index << "}}";
}

// Behind the slice's name.
void end_slice(std::string_view color, std::int64_t lane, std::int64_t from_ns, std::int64_t to_ns,
               const Placement& to, Pen& out) {
  out << "\",";
  out.slice(to.pid, lane, to.moved(from_ns), to.length(from_ns, to_ns - from_ns))
      << ",\"cname\":\"" << color << "\"}";
}

}  // namespace

void write_steps(const std::vector<steps::Interval>& steps,
                 const std::optional<stats::StepList>& only, const Placement& to, Pen& out) {
  bool named = false;
  for (const steps::Interval& i : steps) {
    if (only && !only->holds(i.step)) continue;
    if (!std::exchange(named, true)) name_lane("steps", kStepsLane, -2, to, out);
    out.line() << "{\"cat\":\"LANE\",\"name\":\"step " << i.step;
    end_slice("grey", kStepsLane, i.from_ns, i.to_ns, to, out);
  }
}

void write_exposed(const why::Spans& exposed, const Placement& to, Pen& out) {
  name_lane("exposed communication", kExposedLane, -1, to, out);
  for (const why::Span& s : exposed) {
    out.line() << "{\"cat\":\"LANE\",\"name\":\"exposed";
    end_slice("terrible", kExposedLane, s.from_ns, s.to_ns, to, out);
  }
}

}  // namespace tprof::trace_export
