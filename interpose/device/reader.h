// Reads the events of timed calls, marks and scopes.
#pragma once

#include <cstdint>

namespace tprof::timing::reader {

// Runs on own_thread, and reads what the devices have finished. `ending`: the rest is lost.
std::uint32_t look(bool ending);
void after_fork();

}  // namespace tprof::timing::reader
