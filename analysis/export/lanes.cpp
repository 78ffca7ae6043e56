#include "export/lanes.h"

#include <fmt/format.h>

#include <iterator>

#include "export/pen.h"
#include "interpose/format/record.h"

namespace tprof::trace_export {
namespace {

// Above the lanes of ranges, devices and computation, and below those of other tools.
constexpr std::int64_t kStepsLane = (std::int64_t{1} << 24) - 2;
constexpr std::int64_t kExposedLane = (std::int64_t{1} << 24) - 1;

// Names a lane, and puts it above the threads, which have 0.
void name_lane(std::string_view name, std::int64_t lane, int index, const Placement& to,
               std::string& out) {
  fmt::format_to(std::back_inserter(out),
                 ",\n{{\"cat\":\"{0}\",\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{1},"
                 "\"tid\":{2},\"args\":{{\"name\":\"{3}\"}}}}"
                 ",\n{{\"cat\":\"{0}\",\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":{1},"
                 "\"tid\":{2},\"args\":{{\"sort_index\":{4}}}}}",
                 kLaneCategory, to.pid, lane, name, index);
}

void append_slice(std::string_view name, std::string_view color, std::int64_t lane,
                  std::int64_t ts_ns, std::int64_t dur_ns, const Placement& to, Pen& pen,
                  std::string& out) {
  pen << ",\n{\"cat\":\"LANE\",\"name\":\"" << name << "\",";
  pen.slice(to.pid, lane, to.moved(ts_ns), to.length(ts_ns, dur_ns))
      << ",\"cname\":\"" << color << "\"}";
  pen.move_to(out);
}
static_assert(kLaneCategory == "LANE");

}  // namespace

void append_steps(const std::vector<steps::Interval>& steps,
                  const std::optional<stats::StepList>& only, const Placement& to,
                  std::string& out) {
  const std::size_t before = out.size();
  name_lane("steps", kStepsLane, -2, to, out);
  const std::size_t named = out.size();
  Pen pen;
  for (const steps::Interval& i : steps) {
    if (only && !only->holds(i.step)) continue;
    append_slice(fmt::format("step {}", i.step), "grey", kStepsLane, i.from_ns, i.to_ns - i.from_ns,
                 to, pen, out);
  }
  if (out.size() == named) out.resize(before);
}

void append_exposed(const why::Spans& exposed, const Placement& to, std::string& out) {
  name_lane("exposed communication", kExposedLane, -1, to, out);
  Pen pen;
  for (const why::Span& s : exposed) {
    append_slice("exposed", "terrible", kExposedLane, s.from_ns, s.ns(), to, pen, out);
  }
}

}  // namespace tprof::trace_export
