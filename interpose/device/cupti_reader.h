// Reads CUPTI's records: times of calls, and how long the device was busy with kernels.
#pragma once

namespace tprof::device::cupti_reader {

// Makes us CUPTI's client. Returns what keeps us from it, or null.
const char* enter(bool window_open);
// Reads what there is. Call it on one thread only, which flushes. False: we are no client.
bool read(bool ending, bool window_open);
void after_fork();

}  // namespace tprof::device::cupti_reader
