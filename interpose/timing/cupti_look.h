// Reads CUPTI's records: times of calls, and how long the device was busy with kernels.
#pragma once

#include <cstdint>

namespace tprof::timing::cupti_look {

// Runs on own_thread, the only thread that flushes. The first call makes us CUPTI's client.
std::uint32_t look(bool ending);
// Waits until that has happened, a second at most.
void wait_until_in();
// Soon after this, CUPTI starts or stops making records.
void set_window(bool open);
void after_fork();

}  // namespace tprof::timing::cupti_look
