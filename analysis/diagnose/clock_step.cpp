// Finds hosts whose wall clock was set while the job ran.
#include <algorithm>
#include <cmath>
#include <map>

#include "diagnose/diagnosis.h"
#include "diagnose/who.h"

namespace tprof::diagnose {
namespace {

using read::Anchor;

struct Step {
  double size_ns = 0;  // signed; 0: none
  std::int64_t after_ns = 0;
  std::int64_t before_ns = 0;

  void keep_larger(const Step& other) {
    if (std::abs(other.size_ns) > std::abs(size_ns)) *this = other;
  }
};

// Computes in floating point, so that no value in a damaged file can overflow a sum.
Step step_between(const Anchor& a, const Anchor& b) {
  const auto from_to = [](std::int64_t from, std::int64_t to) {
    return static_cast<double>(to) - static_cast<double>(from);
  };
  const double passed = from_to(a.ts_ns, b.ts_ns);
  const double step = from_to(a.realtime_ns, b.realtime_ns) - passed;
  // NTP slews by 500 ppm at most. Reading both clocks takes the bracket, and sometimes a
  // millisecond more.
  const double allowed =
      passed / 2000 + from_to(0, a.bracket_ns) / 2 + from_to(0, b.bracket_ns) / 2;
  if (passed >= 0 && std::abs(step) <= allowed + 1e6) return {};
  return {passed < 0 ? passed : step, a.realtime_ns, b.realtime_ns};
}

struct LargestStep : collect::Collector {
  using collect::Collector::Collector;
  bool wants_so_far() const override { return true; }
  bool wants_metadata() const override { return true; }
  void metadata(const read::Line&, const read::Process& so_far) override {
    const std::vector<Anchor>& clock = so_far.header.clock;
    for (; seen_ < clock.size(); ++seen_) {
      if (seen_ != 0) step.keep_larger(step_between(clock[seen_ - 1], clock[seen_]));
    }
  }
  void state(team::Archive& archive) override { archive(step); }

  Step step;

 private:
  std::size_t seen_ = 0;
};

void clock_steps(const Case& c, Findings& found) {
  struct Host {
    Processes processes;
    Step step;
  };
  std::map<std::string, Host> hosts;  // by boot and host, since a host has one clock
  for (const read::Process* p : c.job.processes) {
    const auto* largest = c.lines.of<LargestStep>(p);
    if (largest == nullptr || largest->step.size_ns == 0) continue;
    Host& host = hosts[p->header.boot_id + p->header.host];
    host.processes.push_back(p);
    host.step.keep_larger(largest->step);
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

extern const Diagnosis kClockStep{kCheck, clock_steps, collect::want<LargestStep>, true};

}  // namespace tprof::diagnose
