// Rules of the addresses that were met, each looked up once.
#pragma once

#include <cstdint>

#include "interpose/sites/frame_rule.h"

namespace tprof::native {

// Of an address that is met for the first time it takes a lock, and the loader's of its list.
Rule rule_of(std::uintptr_t address);

// Of a library that was unloaded: what was known of its addresses may be wrong for the next one
// there. False: nothing was unloaded since the last time.
bool forget_unloaded();

}  // namespace tprof::native
