// One line of a process, moved to another pid and another time axis.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "read/json.h"
#include "read/lines.h"

namespace tprof::trace_export {

// Where a process goes in the merged trace.
struct Placement {
  std::int64_t pid = 0;
  std::int64_t shift_ns = 0;      // added to every time
  std::int64_t base_time_ns = 0;  // CLOCK_REALTIME at ts 0 of the merged trace
  // And this, of a ts: clocks do not run alike. Empty: nothing.
  std::function<std::int64_t(std::int64_t ts_ns)> drift_ns{};
  // What an event's arguments get besides, by where in training it is: "step":7. Empty: nothing.
  std::function<std::string(std::int64_t ts_ns)> position{};

  std::int64_t moved(std::int64_t ts_ns) const {
    return ts_ns + shift_ns + (drift_ns ? drift_ns(ts_ns) : 0);
  }
};

inline read::Malformed not_an_object() {
  return read::Malformed("expected one JSON object on this line");
}

// What simdjson says, or an exception: the line is not JSON.
template <typename T>
T value_of(simdjson::simdjson_result<T> result) {
  T value;
  if (std::move(result).get(value) != simdjson::SUCCESS) throw not_an_object();
  return value;
}

class LineEditor {
 public:
  // Appends the edited line to `out`, without a line break. Every other byte of it stays as it is.
  // False: the line is not for the merged trace (viewers' names of processes, and arrows: merge
  // gives its own; lines of other tools). Throws read::Malformed.
  bool edit(const read::Line& line, const Placement& to, std::string& out);

 private:
  struct Places {
    std::string_view name;
    std::string_view pid;
    std::string_view ts;      // of an event its own, of metadata the one in its arguments
    std::string_view queued;  // of a DEVICE line: a time before that
  };
  Places find(const read::Line& line);
  static void add_position(const read::Line& line, const Places& at, const Placement& to,
                           std::string& out);

  simdjson::ondemand::parser parser_;
};

// "1042.117" from 1042117.
void append_micros(std::string& out, std::int64_t ns);

}  // namespace tprof::trace_export
