#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

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

// How many ranks there are, of how many the counts are known, and how long the run is, which the
// heading tells too.
struct Ranks {
  std::size_t known = 0;
  std::size_t all = 0;
  std::uint64_t run_ns = 0;
};

// A rank may have started others, which have its number. A process may hold several.
Ranks ranks_of(const job::Job& job) {
  std::set<std::pair<std::int64_t, std::size_t>> all;
  std::set<std::pair<std::int64_t, std::size_t>> known;
  std::int64_t none = 0;
  for (const read::Process* p : job.processes) {
    const std::pair rank(p->header.rank.value_or(--none), p->lane);
    all.insert(rank);
    if (p->ledger) known.insert(rank);
  }
  const auto [first, last] = diagnose::span_of(job.processes);
  return {known.size(), all.size(),
          static_cast<std::uint64_t>(std::max<std::int64_t>(last - first, 0))};
}

// Some filters leave a part of the run only, and its time is not that.
bool is_of_whole_run(const stats::Summary& s) {
  return std::ranges::all_of(
      s.only.given(), [](const auto& given) { return std::string_view(given.first) == "ranks"; });
}

// Calls can be timed on the device, but nobody asked for that.
bool may_be_timed(const job::Job& job) {
  return std::ranges::none_of(job.processes, [](const read::Process* p) {
    const auto timing = p->header.config->find("TPROF_TIMING");
    return timing != p->header.config->end() && timing->second != "host";
  });
}

// With one queue for all streams timing events would change what the program does.
bool has_one_queue(const job::Job& job) {
  return std::ranges::any_of(job.processes, [](const read::Process* p) {
    const auto queues = p->header.env->find("CUDA_DEVICE_MAX_CONNECTIONS");
    return queues != p->header.env->end() && queues->second == "1";
  });
}

// "41.72 ms per rank on the device (73.5% exposed), 5.5% of the run". `most`: these are nearly all
// calls; the time of a few is no share of the run.
std::string cost(const stats::Summary& s, std::uint64_t ns, const std::string& where, bool most) {
  const Ranks ranks = ranks_of(*s.job);
  const std::uint64_t each_ns = ns / std::max<std::size_t>(ranks.known, 1);
  const bool share = most && ranks.run_ns != 0 && is_of_whole_run(s);
  std::string out =
      fmt::format("Communication: {} per rank {}{}", text::duration(each_ns), where,
                  share ? fmt::format(", {} of the run", ratio(each_ns, ranks.run_ns)) : "");
  if (ranks.known < ranks.all) {
    out += fmt::format(" (of {} of {} ranks)", text::thousands(ranks.known),
                       text::thousands(ranks.all));
  }
  return out;
}

// Calls of a graph have no time of their own: the launch has one.
std::string replays(std::uint64_t calls) {
  return fmt::format("{} of CUDA graphs, which {} no time of {} own",
                     diagnose::counted(calls, "call"), calls == 1 ? "has" : "have",
                     calls == 1 ? "its" : "their");
}

// How long the rank with the most was in calls that make and end communicators, of its life.
std::string life(const job::Job& job) {
  const read::Process* most = nullptr;
  std::uint64_t most_ns = 0;
  for (const read::Process* p : job.processes) {
    std::uint64_t ns = 0;
    for (const read::LifeCalls& calls :
         p->ledger ? p->ledger->life : std::vector<read::LifeCalls>())
      ns = read::saturated_sum(ns, calls.host_ns);
    if (ns > most_ns) most = p, most_ns = ns;
  }
  if (most == nullptr) return "";
  const auto& longest =
      *std::ranges::max_element(most->ledger->life, {}, &read::LifeCalls::host_ns);
  return fmt::format(
      "Communicators: {} of {} of {} went into making and ending them ({}: {})\n",
      text::duration(most_ns),
      diagnose::duration(diagnose::known_until_ns(*most) - most->header.base_time_ns),
      diagnose::name_of_rank(*most), longest.name, text::duration(longest.host_ns));
}

}  // namespace

std::string headline(const stats::Summary& s) {
  const Amounts all = stats::sum(s.buckets);
  if (all.calls == 0) return "No NCCL call and no CUDA copy was counted.\n" + life(*s.job);
  std::string out = fmt::format("{} moved {}\n{}", diagnose::counted(all.calls, "call"),
                                text::bytes(all.bytes), life(*s.job));
  const Amounts nccl = communication(s);
  if (nccl.calls == 0) return out;
  if (nccl.device_timed == 0 && nccl.replayed == nccl.calls) {
    return out + fmt::format("Communication: {}\n", replays(nccl.replayed));
  }
  if (nccl.device_timed == 0) {
    out += cost(s, nccl.host_ns, "on the host", true) + "\n";
    if (nccl.replayed != 0) out += fmt::format("(not in it: {})\n", replays(nccl.replayed));
    if (!may_be_timed(*s.job)) return out;
    return out + fmt::format("(on the device: with TPROF_TIMING={})\n",
                             has_one_queue(*s.job) ? "cupti" : "events");
  }
  std::string exposed;
  std::string of_few;
  if (nccl.exposure_known != 0) {
    const std::string share = ratio(nccl.exposed_ns, nccl.exposure_known_ns);
    if (exposure_tells(nccl)) {
      exposed = fmt::format(" ({} exposed)", share);
    } else {
      of_few =
          fmt::format("; {} of {} of {} timed calls exposed, of the others it is not known", share,
                      text::thousands(nccl.exposure_known), text::thousands(nccl.device_timed));
    }
  }
  const bool most =
      10.0 * static_cast<double>(nccl.device_timed) >= 9.0 * static_cast<double>(nccl.calls);
  out += cost(s, nccl.device_ns, "on the device" + exposed, most) + of_few;
  if (nccl.device_timed != nccl.calls) {
    out += fmt::format("; timed: {} of {} calls", text::thousands(nccl.device_timed),
                       text::thousands(nccl.calls));
  }
  return out + "\n";
}

}  // namespace tprof::report
