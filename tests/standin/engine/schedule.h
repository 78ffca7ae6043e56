// What ran on the devices and when, for tests of what says it measured that (STANDIN_SCHEDULE).
#pragma once

#include <cstdint>

namespace standin::schedule {

// One line in schedule-<pid>: stream, what, and CLOCK_MONOTONIC ns of three moments: the stream had
// come to it, it waited for nothing any more, it had ended. `what`: a counted function's name,
// "kernel", or "marker" for events and waits.
void ran(unsigned long long stream, const char* what, int64_t reached_ns, int64_t began_ns,
         int64_t ended_ns);
bool wanted();

}  // namespace standin::schedule
