// The thread that reads the events of timed calls and of waits for them.
#pragma once

#include <cstdint>

namespace tprof::timing::reader {

bool begin();
void wake();
// Reads what the devices are through with, and takes the rest for lost.
void last_look(std::uint32_t timeout_ms);
void after_fork();

}  // namespace tprof::timing::reader
