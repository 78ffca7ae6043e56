// The hosts of a job: groups of processes that share a clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "job/jobs.h"

namespace tprof::job {

struct Host {
  std::string name;
  std::vector<const read::Process*> processes;
  // How far off the difference of two processes' times may be, ns. 0: all know their
  // CLOCK_MONOTONIC, which a boot shares.
  std::int64_t slack_ns = 0;
};

class Hosts {
 public:
  explicit Hosts(const Job& job);

  const std::vector<Host>& all() const { return hosts_; }
  std::size_t of(const read::Process& process) const { return places_.at(&process).host; }
  // Maps a process's ts to the axis of its host, in nanoseconds. The zero is when the job's
  // earliest process began, by the host's wall clock then.
  std::int64_t on_axis(const read::Process& process, std::int64_t ts_ns) const {
    return places_.at(&process).base_ns + ts_ns;
  }
  // CLOCK_REALTIME at the zero of the axes, if the hosts' wall clocks agree.
  std::int64_t zero_ns() const { return zero_ns_; }

 private:
  struct Place {
    std::size_t host = 0;
    std::int64_t base_ns = 0;
  };
  std::vector<Host> hosts_;
  std::map<const read::Process*, Place> places_;
  std::int64_t zero_ns_ = 0;
};

}  // namespace tprof::job
