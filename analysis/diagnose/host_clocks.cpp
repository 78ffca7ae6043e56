#include "diagnose/host_clocks.h"

#include <algorithm>
#include <vector>

namespace tprof::diagnose {
namespace {

constexpr std::int64_t kGrainNs = 1000;  // CUDA events resolve half a microsecond

template <typename See>
void each_of_several_hosts(const Meetings& meetings, const See& see) {
  meetings.each([&](const Meeting& m) {
    if (m.parts.size() < 2) return;
    const std::vector<align::Passage> passages = passages_of(m);
    if (passages.size() >= 2) see(passages);
  });
}

HostClocks fitted(const Meetings& meetings) {
  align::ClockFit fit(meetings.hosts().all().size());
  std::uint64_t collectives = 0;
  if (meetings.on_device()) {
    each_of_several_hosts(meetings, [&](const std::vector<align::Passage>& passages) {
      fit.add(passages);
      ++collectives;
    });
  }
  HostClocks found{.clocks = fit.clocks(), .collectives = collectives};
  if (collectives == 0) return found;
  each_of_several_hosts(meetings, [&](const std::vector<align::Passage>& passages) {
    if (found.clocks.violation(passages) > kGrainNs) ++found.violated;
  });
  return found;
}

}  // namespace

const HostClocks& host_clocks(const Meetings& meetings) {
  if (!meetings.clocks_) meetings.clocks_ = std::make_shared<HostClocks>(fitted(meetings));
  return *meetings.clocks_;
}

double error_ns(const Meetings& meetings, const align::Clocks& clocks, std::size_t a,
                std::size_t b) {
  const auto& hosts = meetings.hosts().all();
  return clocks.at_most(a, b) + static_cast<double>(std::max(hosts[a].slack_ns, hosts[b].slack_ns));
}

}  // namespace tprof::diagnose
