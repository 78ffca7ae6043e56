// The tprof_window lines of a rank file: one for each window of TPROF_SCHEDULE or tprof ctl.
#pragma once

#include <cstdint>
#include <string_view>

namespace tprof::read {

struct WindowLine {
  std::int64_t from_ns = 0;  // after the file's base_time_ns
  std::int64_t to_ns = 0;    // INT64_MAX: it had not ended
};

// Throws Malformed.
WindowLine parse_window_line(std::string_view line);

}  // namespace tprof::read
