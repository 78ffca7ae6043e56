#include "export/flows.h"

#include <fmt/format.h>

#include <iterator>

#include "interpose/format/record.h"
#include "read/events.h"

namespace tprof::trace_export {

void append_flow(const read::Line& line, const Placement& to, simdjson::dom::parser& parser,
                 std::string& out) {
  read::object event;
  if (parser.parse(line.text.data(), line.text.size(), false).get(event) != simdjson::SUCCESS) {
    throw not_an_object();
  }
  const read::DeviceTime time = read::device_time_of(event);
  const std::int64_t at = to.moved(time.ts_ns);
  const auto end = [&](std::string_view phase, std::int64_t tid, std::int64_t ns) {
    fmt::format_to(std::back_inserter(out),
                   ",\n{{\"cat\":\"{}\",\"name\":\"to the device\",\"ph\":{},\"id\":\"{}.{}.{}\","
                   "\"pid\":{},\"tid\":{},\"ts\":",
                   kFlowCategory, phase, to.pid, time.lane, at, to.pid, tid);
    append_micros(out, ns);
    out += '}';
  };
  // One nanosecond inside each event, and not on the edge between two.
  end("\"s\"", time.thread, to.moved(time.ts_ns - time.queued_ns) + 1);
  end("\"f\",\"bp\":\"e\"", time.lane, at + 1);
}

}  // namespace tprof::trace_export
