// Where a process goes in a merged trace, what its times are there, and what of it was asked for.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "align/clocks.h"
#include "check/arrivals.h"
#include "filter/selection.h"
#include "job/hosts.h"
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

enum class Clock { realtime, collective };

class TimeAxis {
 public:
  // Aligns several hosts by what their collectives prove of the clocks, if these were timed on the
  // device and `clock` asks for it. The lines are read for that. Else the hosts' wall clocks
  // decide. Traces that were merged before stay as they are to each other.
  TimeAxis(const run::Lines& lines, Clock clock);

  // Returns the time of a process's ts 0, by CLOCK_REALTIME of the first host as far as it is
  // known.
  std::int64_t zero_ns(const read::Process& process) const;
  // Returns the earliest of these.
  std::int64_t base_ns(const std::vector<const read::Process*>& processes) const;
  Placement placement(const read::Process& process, std::int64_t pid, std::int64_t base_ns) const;

  // Returns by how much each host's clock was corrected, and by how much it may be wrong. Merged
  // traces have the same (see the contract). Empty if the hosts' wall clocks are used.
  nlohmann::ordered_json clocks() const;
  // Returns the same as a sentence for people. Empty for one host, and for traces merged before.
  std::string sentence() const;

 private:
  bool aligned() const { return found_ && found_->across_hosts != 0; }

  job::Hosts hosts_;
  std::optional<check::Arrivals> found_{};  // nullopt: not looked for
  bool merged_before_ = false;
  bool timed_ = false;  // on the device
};

}  // namespace tprof::trace_export
