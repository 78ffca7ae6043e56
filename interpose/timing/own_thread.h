// The thread that times calls: what waits for a device, or may, waits here.
//
// Not the writer's: on a device that hangs the driver's answers can hang too, and the trace has to
// say so.
#pragma once

#include <cstdint>

namespace tprof::timing::own_thread {

// `look` is called again and again, and says after how many milliseconds it wants to be called
// again. `ending`: nothing more will come, and what is not known now is lost.
bool begin(std::uint32_t (*look)(bool ending));
void wake();
// Has it look with `ending`, and waits for that.
void last_look(std::uint32_t timeout_ms);

}  // namespace tprof::timing::own_thread
