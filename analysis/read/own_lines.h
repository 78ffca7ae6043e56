// Reads the lines that a trace has most of without JSON's generality, as the library writes them:
// calls, device times and computation, their fields in the order of the contract, numbers and names
// without escapes. Whatever else a line is or has, these return false, and simdjson reads it. What
// they read, simdjson would read alike.
#pragma once

#include <string_view>

#include "read/events.h"

namespace tprof::read {

// A collective, a transfer or a copy that returned without an error. The value of `e` from an
// earlier line is overwritten, and its strings' room used again.
bool own_call(std::string_view line, Event& e);
bool own_device_time(std::string_view line, DeviceTime& t);
bool own_busy(std::string_view line, Busy& b);

}  // namespace tprof::read
