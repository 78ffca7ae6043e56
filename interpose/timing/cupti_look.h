// Reads CUPTI's records: times of calls, and how long the device was busy with kernels.
#pragma once

#include <cstdint>

namespace tprof::timing::cupti_look {

// On own_thread, which is the only one that flushes. The first one makes us CUPTI's client.
std::uint32_t look(bool ending);
// For as long as that takes, a second at most.
void wait_until_in();
// From soon on CUPTI is to make records, or soon no more.
void set_window(bool open);
void after_fork();

}  // namespace tprof::timing::cupti_look
