// Reads the lines that a trace has most of without JSON's generality, as the library writes them:
// calls, device times and computation, their fields in the order of the contract, numbers and names
// without escapes. Whatever else a line is or has, these return false, and simdjson reads it. What
// they read, simdjson would read alike.
#pragma once

#include <string_view>

#include "read/events.h"

namespace tprof::read {

// Where a line's arguments stand, for who writes them again.
struct OwnArguments {
  std::string_view all;     // from the first behind "op" on, with all that ends the line
  std::string_view queued;  // of a device time, its value
};

// A collective, a transfer or a copy that returned without an error. The value of `e` from an
// earlier line is overwritten, and its strings' room used again.
bool own_call(std::string_view line, Event& e, OwnArguments* arguments = nullptr);
bool own_device_time(std::string_view line, DeviceTime& t, OwnArguments* arguments = nullptr);
bool own_busy(std::string_view line, Busy& b);

}  // namespace tprof::read
