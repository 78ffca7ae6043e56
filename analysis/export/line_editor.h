// Moves one line of a process to another pid and another time axis: any but those of calls and
// their times on the device, of which viewers get more (part_editor.h).
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "export/nesting.h"
#include "read/json.h"
#include "read/lines.h"

namespace tprof::trace_export {

// The place of a process in the merged trace.
struct Placement {
  std::int64_t pid = 0;
  std::int64_t shift_ns = 0;      // added to every time
  std::int64_t base_time_ns = 0;  // CLOCK_REALTIME at ts 0 of the merged trace
  // Also added, depending on the ts, since clocks drift. Empty: nothing is added.
  std::function<std::int64_t(std::int64_t ts_ns)> drift_ns{};
  // Returns what an event's arguments get besides, for its place in training: "step":7. Empty:
  // nothing.
  std::function<std::string(std::int64_t ts_ns)> position{};
  bool from_zero = false;  // leave out lines of before ts 0 of the merged trace
  // Tells whether a line that is no metadata was asked for. Empty: all are.
  std::function<bool(const read::Line& line, simdjson::dom::parser& parser)> keeps{};
  std::uint64_t left_out = 0;  // calls that were not: the footer says so

  std::int64_t moved(std::int64_t ts_ns) const {
    return ts_ns + shift_ns + (drift_ns ? drift_ns(ts_ns) : 0);
  }
  // How long a slice is on the axis: its end drifts as its begin does, so that two slices that
  // follow each other still do.
  std::int64_t length(std::int64_t ts_ns, std::int64_t dur_ns) const {
    return drift_ns ? moved(ts_ns + dur_ns) - moved(ts_ns) : dur_ns;
  }
};

inline read::Malformed not_an_object() {
  return read::Malformed("expected one JSON object on this line");
}

// Returns simdjson's value. Throws if the line is not JSON.
template <typename T>
T value_of(simdjson::simdjson_result<T> result) {
  T value;
  if (std::move(result).get(value) != simdjson::SUCCESS) throw not_an_object();
  return value;
}

class LineEditor {
 public:
  // Appends the edited line to `out`, without a line break. Every other byte of it stays as it is.
  // Returns false if the line is not for the merged trace: lines of other tools, names of processes
  // and arrows, of which merge writes its own, and the header of a node's file. Throws
  // read::Malformed. `slices`: those of the process; null: they are not known.
  bool edit(const read::Line& line, const Placement& to, std::string& out,
            const Nesting* slices = nullptr);
  // Appends the arguments of a line but those that merge adds, and what ends the line.
  void arguments(const read::Line& line, std::string& out);

 private:
  struct Places {
    std::string_view name;
    std::string_view pid;
    std::string_view tid;
    std::string_view ts;    // an event's own; of metadata the one in its arguments
    std::string_view dur;   // of a slice
    std::string_view args;  // from their beginning on
    std::string_view cut;   // by how much the slice is shorter than it was
  };
  Places find(const read::Line& line);
  static void add_position(const read::Line& line, const Places& at, const Placement& to,
                           std::string& out);

  simdjson::ondemand::parser parser_;
};

// Puts a moment's position into the arguments that end the last line of `out`.
void append_position(const Placement& to, std::int64_t ts_ns, std::string& out);

}  // namespace tprof::trace_export
