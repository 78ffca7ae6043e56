// Chooses one of the programs of a node that would write the same lanes: several `tprof run` of one
// job start one each.
#pragma once

#include <cstdint>
#include <string_view>

namespace tprof::node {

enum class Turn : std::uint8_t { at_once, after_another, never };

// Waits until no other program of this node has the turn for this folder and run; it is ours until
// we end. Never: our parent, at the other end of `parent`, has gone meanwhile.
Turn wait_for_turn(const char* folder, std::string_view run_id, int parent);

}  // namespace tprof::node
