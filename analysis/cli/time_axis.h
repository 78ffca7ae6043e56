// The one axis of a merged trace: how the clocks of several hosts are put on it, and how sure that
// is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "diagnose/host_clocks.h"
#include "export/chrome.h"
#include "job/hosts.h"

namespace tprof::cli {

enum class Clock { realtime, collective };

class TimeAxis {
 public:
  // Of several hosts whose collectives were timed on the device, and where that is wanted, the
  // lines are read: by what they prove of the clocks the hosts are aligned. Else their wall clocks
  // decide. Traces that were merged before stay as they are to each other.
  TimeAxis(const job::Job& job, const read::Traces& traces, Clock clock);

  // Where ts 0 of a process is, CLOCK_REALTIME of the first host as far as it is known.
  std::int64_t zero_ns(const read::Process& process) const;
  // The earliest of these.
  std::int64_t base_ns(const std::vector<const read::Process*>& processes) const;
  trace_export::Placement placement(const read::Process& process, std::int64_t pid,
                                    std::int64_t base_ns) const;

  // Of each host by how much its clock was corrected, and by how much it may be wrong, as merged
  // traces have it (see the contract); empty: by the hosts' wall clocks.
  std::vector<trace_export::HostClock> clocks() const;
  // The same for people, one sentence; empty: there is one host.
  std::string sentence() const;

 private:
  bool aligned() const { return found_ && found_->known(); }

  std::unique_ptr<diagnose::Meetings> meetings_;
  std::unique_ptr<diagnose::HostClocks> found_;  // null: not looked for
  bool merged_before_ = false;
};

}  // namespace tprof::cli
