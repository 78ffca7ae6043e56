#include "export/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/text.h"

namespace tprof::trace_export {
namespace {

std::string duration(double ns) {
  return text::duration(static_cast<std::uint64_t>(std::llround(std::max(ns, 0.0))));
}

}  // namespace

TimeAxis::TimeAxis(const run::Lines& lines, Clock clock)
    : hosts_(lines.job()),
      merged_before_(std::ranges::any_of(lines.traces().traces, &read::Trace::merged)),
      timed_(check::timed_on_device(lines.job())) {
  if (clock == Clock::realtime || merged_before_ || hosts_.all().size() < 2 || !timed_) return;
  found_ = check::arrivals_of(lines);
  timed_ = found_->on_device;
  found_->comms = {};  // only the clocks are needed
}

std::int64_t TimeAxis::zero_ns(const read::Process& p) const {
  const job::Hosts& hosts = hosts_;
  const std::int64_t at = hosts.on_axis(p, 0);
  return hosts.zero_ns() + (aligned() ? found_->clocks.aligned(hosts.of(p), at) : at);
}

std::int64_t TimeAxis::base_ns(const std::vector<const read::Process*>& processes) const {
  const auto zero_of = [&](const read::Process* p) { return zero_ns(*p); };
  return zero_of(*std::ranges::min_element(processes, {}, zero_of));
}

Placement TimeAxis::placement(const read::Process& p, std::int64_t pid,
                              std::int64_t base_ns) const {
  Placement to{pid, zero_ns(p) - base_ns, base_ns};
  if (!aligned()) return to;
  to.host = hosts_.of(p);
  if (found_->clocks.hosts()[to.host].behind == to.host) return to;
  to.clocks = &found_->clocks;
  to.shift_ns = hosts_.on_axis(p, 0);
  to.zero_ns = base_ns - hosts_.zero_ns();
  return to;
}

nlohmann::ordered_json TimeAxis::clocks() const {
  nlohmann::ordered_json all;
  if (!aligned()) return all;
  const auto& hosts = hosts_.all();
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    const align::HostClock& c = found_->clocks.hosts()[h];
    std::vector<std::int64_t> ranks;
    for (const read::Process* p : hosts[h].processes) {
      if (p->header.rank) ranks.push_back(*p->header.rank);
    }
    std::ranges::sort(ranks);
    const bool corrected = c.behind != h;
    const align::Line line = corrected ? c.course.pieces.front().line : align::Line{};
    all.push_back({{"host", hosts[h].name},
                   {"ranks", ranks},
                   {"group", c.group},
                   {"ahead_ns", std::llround(line.y0)},
                   {"drift_ppb", std::llround(line.slope * 1e9)},
                   {"pieces", corrected ? c.course.pieces.size() : 1},
                   {"likely_ns", std::llround(c.likely)},
                   {"at_most_ns", nullptr}});
    if (c.at_most < align::kUnbounded) all.back()["at_most_ns"] = std::llround(c.at_most);
  }
  return all;
}

std::string TimeAxis::sentence() const {
  const std::size_t hosts = hosts_.all().size();
  if (hosts < 2 || merged_before_) return "";
  if (!aligned()) {
    return fmt::format("{} hosts are aligned by their wall clocks, whose error is unknown{}", hosts,
                       timed_ ? "" : " (TPROF_TIMING=events aligns them better)");
  }
  double likely = 0;
  double at_most = 0;
  std::size_t apart = 0;  // hosts not connected to the first
  for (const align::HostClock& c : found_->clocks.hosts()) {
    likely = std::max(likely, c.likely);
    at_most = std::max(at_most, c.at_most);
    if (c.group != 0) ++apart;
  }
  std::string said = fmt::format("the clocks of {} hosts are aligned by {} collectives to about {}",
                                 hosts, text::thousands(found_->across_hosts), duration(likely));
  if (at_most < align::kUnbounded)
    said += fmt::format("; none is off by more than {}", duration(at_most));
  if (apart != 0) {
    said +=
        fmt::format("; {} of them share no collective with the others, and keep their wall clocks",
                    text::thousands(apart));
  }
  if (found_->violated != 0) {
    said += fmt::format("; {} of the collectives contradict this: do not trust these clocks",
                        text::thousands(found_->violated));
  }
  return said;
}

}  // namespace tprof::trace_export
