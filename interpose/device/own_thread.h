// The thread that times calls. Whatever waits for a device, or may wait, waits here.
//
// It is not the writer's thread: if a device hangs, the driver's answers can hang too, and the
// trace has to say so.
#pragma once

#include <cstdint>

namespace tprof::device::own_thread {

// `read` is called again and again, and returns after how many milliseconds it wants to be called
// again. `ending`: nothing more will come, and what is not known now is lost.
bool begin(std::uint32_t (*read)(bool ending));
void wake();
// Has the thread read, for the last time with `ending`, and waits until it has.
void read_now(std::uint32_t timeout_ms);
void last_read(std::uint32_t timeout_ms);

}  // namespace tprof::device::own_thread
