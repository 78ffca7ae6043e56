// Reads what a description in .eh_frame says of a place (Linux Standard Base, section 10.6).
#pragma once

#include <cstdint>

#include "interpose/marks/frame_rule.h"

namespace tprof::native {

// `description` is an FDE, mapped with its CIE. The rule is unknown if the FDE does not cover the
// address, or needs more than a rule can say.
Rule rule_of_description(const std::uint8_t* description, std::uintptr_t address);

}  // namespace tprof::native
