// Draws arrows for viewers of a merged trace: from a call on the host to its time on the device,
// and between the ranks of a collective or the two ends of a message. An arrow's id is a number
// that no other arrow of the trace has: viewers take no other, and no larger one than 2^53.
#pragma once

#include <cstdint>

#include "export/line_editor.h"
#include "export/pen.h"
#include "export/rank_timeline.h"

namespace tprof::trace_export {

// A place on a lane, on the axis of the merged trace.
struct Touch {
  std::int64_t lane = 0;
  std::int64_t ts_ns = 0;
};

// Writes the two events of the arrow to a device time, each with a line break before it.
void append_flow(std::int64_t id, std::int64_t pid, const Touch& call, const Touch& time, Pen& out);

// Writes this rank's event of the arrow between ranks, if it is one of several. `came` may be
// behind `touch`, which is within what is left of a slice.
void append_turn(const Meets& meets, std::uint32_t channel, std::uint32_t rank, const Arrival& came,
                 std::int64_t pid, const Touch& touch, Pen& out);

}  // namespace tprof::trace_export
