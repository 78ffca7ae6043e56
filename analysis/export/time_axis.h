// The one axis of a merged trace: how the clocks of several hosts are put on it, and how sure that
// is.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "check/arrivals.h"
#include "export/placement.h"
#include "job/hosts.h"

namespace tprof::trace_export {

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
  std::optional<diagnose::Arrivals> found_{};  // nullopt: not looked for
  bool merged_before_ = false;
  bool timed_ = false;  // on the device
};

}  // namespace tprof::trace_export
