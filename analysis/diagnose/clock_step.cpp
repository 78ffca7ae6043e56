// Finds hosts whose wall clock was set while the job ran.
#include <algorithm>
#include <cmath>
#include <map>

#include "diagnose/diagnosis.h"
#include "diagnose/who.h"

namespace tprof::diagnose {
namespace {

void clock_steps(const Case& c, Findings& found) {
  struct Host {
    Processes processes;
    run::ClockStep step;
  };
  std::map<std::string, Host> hosts;  // by boot and host, since a host has one clock
  for (const read::Process* p : c.job.processes) {
    const run::Said* said = c.said(*p);
    if (said == nullptr || said->clock_step.size_ns == 0) continue;
    Host& host = hosts[p->header.boot_id + p->header.host];
    host.processes.push_back(p);
    host.step.keep_larger(said->clock_step);
  }
  for (const auto& [boot, host] : hosts) {
    const auto& [processes, step] = host;
    const bool back = step.size_ns < 0;
    const auto size = static_cast<std::int64_t>(std::min(std::abs(step.size_ns), 9e18));
    Finding& f = add(found, Kind::clock_step, processes,
                     {{"host", processes[0]->header.host},
                      {"back", back},
                      {"by", Ns{size}},
                      {"from", Time{step.after_ns}},
                      {"to", Time{step.before_ns}}});
    f.severity = back ? Severity::warning : Severity::note;
    f.time =
        TimeRange{std::min(step.after_ns, step.before_ns), std::max(step.after_ns, step.before_ns)};
  }
}

}  // namespace

extern const Diagnosis kClockStep{kCheck, clock_steps, true};

}  // namespace tprof::diagnose
