#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "diagnose/ends.h"
#include "diagnose/names.h"
#include "report/figures.h"
#include "report/report.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using read::Amounts;

Amounts communication(const stats::Summary& s) {
  Amounts all;
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    if (!is_copy(static_cast<Bucket>(b))) all += s.buckets[b];
  }
  return all;
}

// How long the ranks ran, summed over them; 0 if the figures are of a part of that only.
std::uint64_t run_ns(const stats::Summary& s) {
  for (const auto& [filter, value] : s.only.given()) {
    if (std::string_view(filter) != "ranks") return 0;
  }
  std::uint64_t sum = 0;
  for (const read::Process* p : s.job->processes) {
    const std::int64_t ran = diagnose::known_until_ns(*p) - p->header.base_time_ns;
    if (ran > 0) sum += static_cast<std::uint64_t>(ran);
  }
  return sum;
}

// Calls can be timed on the device, but nobody asked for that.
bool may_be_timed(const job::Job& job) {
  return std::ranges::none_of(job.processes, [](const read::Process* p) {
    const auto timing = p->header.config->find("TPROF_TIMING");
    return timing != p->header.config->end() && timing->second != "host";
  });
}

// "41.72 ms per rank on the device, 5.5% of the run"
std::string cost(const stats::Summary& s, std::uint64_t ns, const char* where) {
  const std::uint64_t ran = run_ns(s);
  return fmt::format("Communication: {} per rank {}{}",
                     text::duration(ns / s.job->processes.size()), where,
                     ran == 0 ? "" : fmt::format(", {} of the run", ratio(ns, ran)));
}

}  // namespace

std::string headline(const stats::Summary& s) {
  const Amounts all = stats::sum(s.buckets);
  if (all.calls == 0) return "No NCCL call and no CUDA copy was counted.\n";
  std::string out =
      fmt::format("{} moved {}\n", diagnose::counted(all.calls, "call"), text::bytes(all.bytes));
  const Amounts nccl = communication(s);
  if (nccl.calls == 0) return out;
  if (nccl.device_timed == 0) {
    return out +
           fmt::format("{}{}\n", cost(s, nccl.host_ns, "on the host"),
                       may_be_timed(*s.job) ? "\n(on the device: with TPROF_TIMING=events)" : "");
  }
  out += cost(s, nccl.device_ns, "on the device");
  if (nccl.exposure_known != 0) {
    out += fmt::format(", {} exposed", ratio(nccl.exposed_ns, nccl.exposure_known_ns));
  }
  if (nccl.device_timed != nccl.calls) {
    out += fmt::format("; timed: {} of {} calls", text::thousands(nccl.device_timed),
                       text::thousands(nccl.calls));
  }
  return out + "\n";
}

}  // namespace tprof::report
