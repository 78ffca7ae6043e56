#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "check/ends.h"
#include "check/names.h"
#include "report/figures.h"
#include "report/report.h"
#include "report/words.h"
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
  const bool timed = nccl.device_timed != 0;
  const auto if_so = [](bool so, auto value) { return so ? std::optional(value) : std::nullopt; };
  // Calls of a graph have no time of their own: the launch has one.
  const auto replays =
      if_so(!timed && nccl.replayed != 0,
            fmt::format("{} of CUDA graphs, which {} no time of {} own",
                        diagnose::counted(nccl.replayed, "call"),
                        nccl.replayed == 1 ? "has" : "have", nccl.replayed == 1 ? "its" : "their"));
  if (replays && nccl.replayed == nccl.calls) return out + "Communication: " + *replays + "\n";
  const Ranks ranks = ranks_of(*s.job);
  const std::uint64_t each_ns =
      (timed ? nccl.device_ns : nccl.host_ns) / std::max<std::size_t>(ranks.known, 1);
  // The time of a few calls is no share of the run.
  const bool most = !timed || 10.0 * static_cast<double>(nccl.device_timed) >=
                                  9.0 * static_cast<double>(nccl.calls);
  const bool tells = exposure_tells(nccl);
  const std::string exposed = ratio(nccl.exposed_ns, nccl.exposure_known_ns);
  return out +
         filled(
             "Communication: {each} per rank on the {timed?device|host}[ ({exposed} exposed)][, "
             "{share} of the run][ (of {known:,} of {ranks:,} ranks)][; {of_few} of {few:,} of "
             "{few_timed:,} timed calls exposed, of the others it is not known][; timed: "
             "{timed_calls:,} of {calls:,} calls]\n[(not in it: {replays})\n][(on the device: with "
             "TPROF_TIMING={timing})\n]",
             {{"each", text::duration(each_ns)},
              {"timed", timed},
              {"exposed", if_so(timed && tells, exposed)},
              {"share", if_so(most && ranks.run_ns != 0 && is_of_whole_run(s),
                              ratio(each_ns, ranks.run_ns))},
              {"known", if_so(ranks.known < ranks.all, ranks.known)},
              {"ranks", ranks.all},
              {"of_few", if_so(timed && !tells && nccl.exposure_known != 0, exposed)},
              {"few", nccl.exposure_known},
              {"few_timed", nccl.device_timed},
              {"timed_calls", if_so(timed && nccl.device_timed != nccl.calls, nccl.device_timed)},
              {"calls", nccl.calls},
              {"replays", replays},
              {"timing",
               if_so(!timed && may_be_timed(*s.job), has_one_queue(*s.job) ? "cupti" : "events")}});
}

}  // namespace tprof::report
