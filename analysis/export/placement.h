// Where a process goes in a merged trace, what its times are there, and what of it was asked for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "align/clocks.h"
#include "filter/selection.h"
#include "read/process.h"
#include "steps/found.h"

namespace tprof::trace_export {

struct Placement {
  std::int64_t pid = 0;
  std::int64_t shift_ns = 0;      // added to every time
  std::int64_t base_time_ns = 0;  // CLOCK_REALTIME at ts 0 of the merged trace
  // The clock of a host that drifts. Its times are then those of the host with `shift_ns` added,
  // and `zero_ns` is ts 0 of the merged trace on the axis of all hosts. Null: it doesn't.
  const align::Clocks* clocks = nullptr;
  std::size_t host = 0;
  std::int64_t zero_ns = 0;

  std::int64_t moved(std::int64_t ts_ns) const {
    const std::int64_t at = ts_ns + shift_ns;
    return clocks == nullptr ? at : clocks->aligned(host, at) - zero_ns;
  }
  // How long a slice is on the axis: its end drifts as its begin does, so that two slices that
  // follow each other still do.
  std::int64_t length(std::int64_t ts_ns, std::int64_t dur_ns) const {
    return clocks == nullptr ? dur_ns : moved(ts_ns + dur_ns) - moved(ts_ns);
  }
};

// A process of an input, and where it goes. If nowhere, it is left out.
struct Member {
  const read::Process* process = nullptr;
  std::optional<Placement> to{};
  std::string title{};  // as viewers show it
  std::int64_t sort_index = 0;
  bool of_node = false;  // lanes of a node, of which those before ts 0 are left out
  const filter::Selection* asked = nullptr;  // null: all calls
  std::uint64_t left_out = 0;                // calls that were not asked for: the footer says so
  // Its events tell their step and epoch by these. Null: they don't.
  const steps::Found* positions = nullptr;

  // True if what is between these moments was asked for: it touches a chosen step.
  bool wants(std::int64_t from_ns, std::int64_t to_ns) const;
  // Fields of an event's arguments that say where in training it is: "step":7. Empty: nothing.
  std::string position(std::int64_t ts_ns) const;
};
using Members = std::map<const read::Process*, Member>;

}  // namespace tprof::trace_export
