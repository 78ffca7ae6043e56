// Reads CUPTI's records: times of calls, and how long the device was busy with kernels.
#pragma once

namespace tprof::timing::cupti_look {

// Makes us CUPTI's client. Returns what keeps us from it, or null.
const char* enter();
// Reads what there is. Call it on one thread only, which flushes. False: we are no client.
bool look(bool ending);
void after_fork();

}  // namespace tprof::timing::cupti_look
