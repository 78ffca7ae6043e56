// Rules of the addresses that were met so far, each looked up once.
#pragma once

#include <cstdint>

#include "interpose/marks/frame_rule.h"

namespace tprof::native {

// Returns the rule of an address. For a new one it takes a lock, and the loader's lock of its list.
Rule rule_of(std::uintptr_t address);

// Forgets all rules if a library was unloaded: they may be wrong for the next one at its addresses.
// False: nothing was unloaded since the last time.
bool forget_unloaded();

}  // namespace tprof::native
