// Draws arrows for viewers of a merged trace: from a call on the host to its time on the device,
// and between the ranks of a collective or the two ends of a message.
#pragma once

#include <cstdint>

#include "export/line_editor.h"
#include "export/pen.h"
#include "export/rank_timeline.h"
#include "read/events.h"

namespace tprof::trace_export {

// When a call and its time on the device began, on the axis of the merged trace.
struct Began {
  std::int64_t call_ns = 0;
  std::int64_t device_ns = 0;
};

// Writes the two events of the arrow to a device time, each with a line break before it.
void append_flow(const read::DeviceTime& time, const Began& began, std::int64_t pid, Pen& out);

// A place on a lane at which a rank's turn comes.
struct Touch {
  std::int64_t lane = 0;
  std::int64_t ts_ns = 0;  // on the rank's clock
};

// Writes this rank's event of the arrow between ranks, if it is one of several.
void append_turn(const Meets& meets, std::uint32_t channel, std::uint32_t rank, std::uint64_t seq,
                 const Touch& touch, const Placement& to, Pen& out);

}  // namespace tprof::trace_export
