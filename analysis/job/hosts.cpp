#include "job/hosts.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tprof::job {
namespace {

// A process's ts 0 on the clock of its host, which is that of the host's first process.
struct Base {
  std::int64_t ns;
  bool exact;
};
Base base_beside(const read::Header& first, const read::Header& h) {
  if (!first.monotonic_ns || !h.monotonic_ns) return {h.base_time_ns, false};
  return {first.base_time_ns + (*h.monotonic_ns - *first.monotonic_ns), true};
}

// Nobody sets a wall clock by more than this between two starts of a job, while CLOCK_MONOTONIC of
// two containers (time namespaces) differs by more.
constexpr std::int64_t kOneClock = 60'000'000'000;

}  // namespace

Hosts::Hosts(const Job& job) {
  zero_ns_ = job.processes.empty() ? 0 : job.processes[0]->header.base_time_ns;
  for (const read::Process* p : job.processes) {
    zero_ns_ = std::min(zero_ns_, p->header.base_time_ns);
  }
  std::map<std::string, std::vector<std::size_t>> by_boot;
  for (const read::Process* p : job.processes) {
    const read::Header& h = p->header;
    std::vector<std::size_t>& known = by_boot[h.boot_id.empty() ? h.host : h.boot_id];
    const auto beside = [&](std::size_t host) {
      return base_beside(hosts_[host].processes[0]->header, h);
    };
    auto same = std::ranges::find_if(known, [&](std::size_t host) {
      return std::abs(beside(host).ns - h.base_time_ns) < kOneClock;
    });
    if (same == known.end()) {
      hosts_.push_back({h.host, {}, 0});
      known.push_back(hosts_.size() - 1);
      same = std::prev(known.end());
    }
    Host& host = hosts_[*same];
    if (host.processes.empty()) host.processes.push_back(p);
    const Base base = beside(*same);
    if (host.processes[0] != p) {
      host.processes.push_back(p);
      // NTP slews by 500 ppm at most.
      const std::int64_t apart = std::abs(h.base_time_ns - host.processes[0]->header.base_time_ns);
      if (!base.exact) host.slack_ns = std::max(host.slack_ns, apart / 2000 + 1000);
    }
    places_[p] = {*same, base.ns - zero_ns_};
  }
}

}  // namespace tprof::job
