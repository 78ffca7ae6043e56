// Reads the events of timed calls, marks and scopes.
#pragma once

#include <cstdint>

namespace tprof::device::reader {

// Runs on own_thread, and reads what the devices have finished. `ending`: the rest is lost.
std::uint32_t read(bool ending);
// Returns how many scopes the last reading found whose end the device has not reached.
std::uint32_t scopes_left();
void after_fork();

}  // namespace tprof::device::reader
