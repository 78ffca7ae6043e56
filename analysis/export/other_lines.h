// Writes lines of another tool's events: their beginning, lanes and times.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "export/line_editor.h"

namespace tprof::trace_export {

// Above every thread id, and the lanes of ranges (2^22) and streams (2^23).
inline constexpr std::int64_t kFirstOtherLane = std::int64_t{1} << 24;
// The number of lanes that each trace has for itself.
inline constexpr std::int64_t kOtherLanes = std::int64_t{1} << 16;

constexpr std::int64_t first_lane_of(std::size_t number) {
  return kFirstOtherLane + static_cast<std::int64_t>(number) * kOtherLanes;
}

class OtherLines {
 public:
  // Takes the same arguments as OtherTrace::put.
  OtherLines(const Placement& to, std::size_t number, std::string& out,
             const std::function<void(std::string&)>& full)
      : to_(to), number_(number), out_(out), full_(full) {}

  // Returns the lane of a thread or a stream.
  std::int64_t lane(std::string_view process, std::string_view thread);
  // Returns the lane that viewers show as `title`. Writes a line with its name if it is new.
  std::int64_t named_lane(const std::string& title);

  // To write a line, call begin(), then add what it has, then call end(). Text has to be JSON
  // already.
  void begin(std::string_view category, std::string_view phase, std::int64_t lane);
  void field(std::string_view key, std::string_view value);
  void at(std::int64_t realtime_ns);  // its ts
  void duration(std::int64_t ns);
  void id(std::string_view unquoted);
  void text(std::string_view more) { out_ += more; }
  void end();

 private:
  const Placement& to_;
  std::size_t number_;
  std::string& out_;
  const std::function<void(std::string&)>& full_;
  std::map<std::pair<std::string, std::string>, std::int64_t> lanes_;
};

}  // namespace tprof::trace_export
