// Reads the events of timed calls and of waits for them.
#pragma once

#include <cstdint>

namespace tprof::timing::reader {

// On own_thread: what the devices are through with. `ending`: the rest is lost.
std::uint32_t look(bool ending);
void after_fork();

}  // namespace tprof::timing::reader
