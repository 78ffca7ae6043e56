// Places processes in a merged trace: their lanes, their times, and the filters.
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
  // The clock of a drifting host; null: no drift. Times are then the host's plus `shift_ns`, and
  // `zero_ns` is ts 0 of the merged trace on the common axis.
  const align::Clocks* clocks = nullptr;
  std::size_t host = 0;
  std::int64_t zero_ns = 0;

  std::int64_t moved(std::int64_t ts_ns) const {
    const std::int64_t at = ts_ns + shift_ns;
    return clocks == nullptr ? at : clocks->aligned(host, at) - zero_ns;
  }
  // Returns the length of a slice on the axis: both ends drift, so that adjacent slices stay
  // adjacent.
  std::int64_t length(std::int64_t ts_ns, std::int64_t dur_ns) const {
    return clocks == nullptr ? dur_ns : moved(ts_ns + dur_ns) - moved(ts_ns);
  }
};

// A process of an input, and where it goes; without a placement it is left out.
struct Member {
  const read::Process* process = nullptr;
  std::optional<Placement> to{};
  std::string title{};  // for viewers
  std::int64_t sort_index = 0;
  bool of_node = false;                      // lanes of a node; values before ts 0 are left out
  const filter::Selection* asked = nullptr;  // null: all calls
  std::uint64_t left_out = 0;                // filtered calls, for the footer
  // Adds step and epoch to its events; null: doesn't.
  const steps::Found* positions = nullptr;

  // True if the time touches a chosen step.
  bool wants(std::int64_t from_ns, std::int64_t to_ns) const;
  // Argument fields with the position in training: "step":7. Empty: none.
  std::string position(std::int64_t ts_ns) const;
};
using Members = std::map<const read::Process*, Member>;

enum class Clock { realtime, collective };

class TimeAxis {
 public:
  // Aligns several hosts by their collectives, if these were timed on the device and `clock` asks
  // for it; this reads the lines. Otherwise by wall clocks. Traces that were merged before keep
  // their alignment.
  TimeAxis(const run::Lines& lines, Clock clock);

  // Returns a process's ts 0 in CLOCK_REALTIME of the first host, as far as known.
  std::int64_t zero_ns(const read::Process& process) const;
  // Returns the earliest of these.
  std::int64_t base_ns(const std::vector<const read::Process*>& processes) const;
  Placement placement(const read::Process& process, std::int64_t pid, std::int64_t base_ns) const;

  // Returns how each host's clock was corrected, and its error, as in merged traces (see the
  // contract). Empty if wall clocks are used.
  nlohmann::ordered_json clocks() const;
  // Returns the same as a sentence. Empty for one host, and for traces merged before.
  std::string sentence() const;

 private:
  bool aligned() const { return found_ && found_->across_hosts != 0; }

  job::Hosts hosts_;
  std::optional<check::Arrivals> found_{};  // nullopt: not looked for
  bool merged_before_ = false;
  bool timed_ = false;  // on the device
};

}  // namespace tprof::trace_export
