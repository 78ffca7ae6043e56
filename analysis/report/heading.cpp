#include "report/report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <map>
#include <set>
#include <utility>

#include "check/ends.h"
#include "check/names.h"
#include "check/started.h"
#include "interpose/format/schema.h"
#include "report/views.h"
#include "report/words.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using text::printable;

using check::Started;
using read::Process;

constexpr std::size_t kHostsShown = 16;

// Adds an aligned line "key value".
void field(std::string& out, std::string_view key, const std::string& value) {
  out += fmt::format("  {:<9} {}\n", key, printable(value));
}

// Take NCCL_VERSION_CODE (since 2.9) and CUDART_VERSION.
std::string nccl_version(std::int64_t v) {
  return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}
std::string cuda_version(std::int64_t v) {
  return fmt::format("{}.{}", v / 1000, v % 1000 / 10);
}

// Adds one line per version and path. Several lines mean that ranks differ.
template <typename Version, typename Path, typename Print>
void libraries(std::string& out, const job::Job& job, std::string_view key, const Version& version,
               const Path& path, const Print& print) {
  std::map<std::string, check::Processes> served;
  for (const Process* p : job.processes) {
    const std::optional<std::int64_t> v = p->header.*version;
    if (!v && (p->header.*path).empty()) continue;
    served[fmt::format("{}  {}", v ? print(*v) : "?", p->header.*path)].push_back(p);
  }
  for (const auto& [name, processes] : served) {
    field(out, key, name + (served.size() == 1 ? "" : "  (" + check::names_of(processes) + ")"));
  }
}

void settings(std::string& out, std::string_view key, const std::vector<Started>& started,
              Started::About about) {
  std::vector<std::string> seen;
  for (const Started& s : started) {
    if (s.about == about) seen.push_back(s.name + "=" + s.whose());
  }
  if (!seen.empty()) field(out, key, fmt::format("{}", fmt::join(seen, " ")));
}

void hosts(std::string& out, const job::Job& job) {
  std::map<std::string, check::Processes> hosts;
  for (const Process* p : job.processes) hosts[p->header.host].push_back(p);
  std::size_t shown = 0;
  for (const auto& [name, processes] : hosts) {
    if (shown++ == kHostsShown) {
      field(out, "", "and " + check::counted(hosts.size() - kHostsShown, "more host"));
      break;
    }
    std::set<std::int64_t> devices;
    for (const Process* p : processes) {
      devices.insert(p->header.devices.begin(), p->header.devices.end());
      if (p->lanes > 1) devices.insert(p->device);
    }
    std::string line = name + "  " + check::names_of(processes);
    if (!devices.empty()) {
      line += fmt::format("  GPU{} {}", devices.size() == 1 ? "" : "s",
                          text::ranges({devices.begin(), devices.end()}));
    }
    field(out, shown == 1 ? "where" : "", line);
  }
}

using read::Amounts;

Amounts communication(const tables::Summary& s) {
  Amounts all;
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    if (!is_copy(static_cast<Bucket>(b))) all += s.buckets[b];
  }
  return all;
}

// How many ranks there are, for how many counts are known, and the length of the run.
struct Ranks {
  std::size_t known = 0;
  std::size_t all = 0;
  std::uint64_t run_ns = 0;
};

// Several processes may have the number of a rank, and a process may hold several ranks.
Ranks ranks_of(const job::Job& job) {
  std::set<std::pair<std::int64_t, std::size_t>> all;
  std::set<std::pair<std::int64_t, std::size_t>> known;
  std::int64_t none = 0;
  for (const read::Process* p : job.processes) {
    const std::pair rank(p->header.rank.value_or(--none), p->lane);
    all.insert(rank);
    if (p->ledger) known.insert(rank);
  }
  const auto [first, last] = check::span_of(job.processes);
  return {known.size(), all.size(),
          static_cast<std::uint64_t>(std::max<std::int64_t>(last - first, 0))};
}

// False if filters leave only a part of the run.
bool is_of_whole_run(const tables::Summary& s) {
  return std::ranges::all_of(
      s.only.given(), [](const auto& given) { return std::string_view(given.first) == "ranks"; });
}

// True if calls could be timed on the device, but TPROF_TIMING is off.
bool may_be_timed(const job::Job& job) {
  return std::ranges::none_of(job.processes, [](const read::Process* p) {
    return p->header.config.get("TPROF_TIMING", "host") != "host";
  });
}

// With a single queue, timing events would change the program's behaviour.
bool has_one_queue(const job::Job& job) {
  return std::ranges::any_of(job.processes, [](const read::Process* p) {
    return p->header.env.get("CUDA_DEVICE_MAX_CONNECTIONS") == "1";
  });
}

// Describes the rank that spent the most time in creating and ending communicators.
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
      "Communicators: {} of {} of {} were spent on creating and ending them ({}: {})\n",
      text::duration(most_ns),
      check::duration(check::known_until_ns(*most) - most->header.base_time_ns),
      check::name_of_rank(*most), longest.name, text::duration(longest.host_ns));
}

}  // namespace

std::string how_many(const std::vector<const Process*>& processes) {
  const auto n = static_cast<std::size_t>(
      std::ranges::count(processes, std::size_t{0}, [](const Process* p) { return p->lane; }));
  const std::string held = check::counted(n, "process");
  return n == processes.size() ? held : fmt::format("{} ranks in {}", processes.size(), held);
}

std::string heading(const tables::Summary& s) {
  const job::Job& job = *s.job;
  const auto [first, last] = check::span_of(job.processes);
  // Several processes may have the number of a rank.
  const std::size_t n = job.processes.size();
  const std::string ranks = check::counted(job.ranks.size(), "rank");
  const std::string processes = how_many(job.processes);
  const bool plain = std::ranges::all_of(
      job.processes, [](const Process* p) { return p->header.rank && p->lanes == 1; });
  std::set<std::string> hosts;
  for (const Process* p : job.processes) hosts.insert(p->header.host);
  std::string out = fmt::format(
      "{}{}: {} on {}, {:%F %T} UTC, {}\n", job.run_id.empty() ? "" : "run ", printable(job.label),
      plain ? ranks + (job.ranks.size() == n ? "" : ", " + processes) : processes,
      hosts.size() == 1 ? printable(*hosts.begin()) : check::counted(hosts.size(), "host"),
      fmt::gmtime(static_cast<std::time_t>(first / 1'000'000'000)), check::duration(last - first));
  if (const std::string only = s.only.sentence(); !only.empty()) field(out, "filter", only);
  for (const std::string& note : s.notes) field(out, "", note);
  return out;
}

std::string details(const tables::Summary& s) {
  const job::Job& job = *s.job;
  std::string out;
  field(out, "tprof", kVersion);
  std::set<std::string> commands;
  for (const Process* p : job.processes) commands.insert(p->header.command);
  field(out, "command",
        *commands.begin() +
            (commands.size() == 1
                 ? ""
                 : "  (and " + check::counted(commands.size() - 1, "other command") + ")"));
  hosts(out, job);
  libraries(out, job, "NCCL", &read::Header::nccl_version, &read::Header::nccl_path, nccl_version);
  libraries(out, job, "CUDA", &read::Header::cudart_version, &read::Header::cudart_path,
            cuda_version);
  const auto started = check::started_with(job.processes);
  settings(out, "settings", started, Started::About::config);
  settings(out, "env", started, Started::About::env);
  return out;
}

// Says what tracing itself cost; empty: unknown.
static std::string own_cost(const tables::Summary& s) {
  const double all_ns = static_cast<double>(s.self_cost_ns) + s.self_in_calls_ns;
  if (s.self_run_ns == 0 || all_ns == 0) return "";
  const auto in_calls = static_cast<std::uint64_t>(s.self_in_calls_ns);
  return fmt::format(
      "Cost of tprof: {} of CPU in its own threads{}, {:.2g}% of the processes' run time\n",
      text::duration(s.self_cost_ns),
      in_calls == 0 ? "" : fmt::format(" and about {} inside of calls", text::duration(in_calls)),
      100 * all_ns / static_cast<double>(s.self_run_ns));
}

static std::string what_moved(const tables::Summary& s) {
  const Amounts all = tables::sum(s.buckets);
  if (all.calls == 0) {
    const bool told =
        std::ranges::count(s.findings, check::Kind::nothing_counted, &check::Finding::kind) != 0;
    return (told ? "" : "No NCCL call and no CUDA copy was counted.\n") + life(*s.job);
  }
  std::string out = fmt::format("{} moved {}\n{}", check::counted(all.calls, "call"),
                                text::bytes(all.bytes), life(*s.job));
  const Amounts nccl = communication(s);
  if (nccl.calls == 0) return out;
  const bool timed = nccl.device_timed != 0;
  const auto if_so = [](bool so, auto value) { return so ? std::optional(value) : std::nullopt; };
  // Replayed calls have no time: only their launch has.
  const auto replays =
      if_so(!timed && nccl.replayed != 0,
            fmt::format("{} of CUDA graphs, which {} no time of {} own",
                        check::counted(nccl.replayed, "call"), nccl.replayed == 1 ? "has" : "have",
                        nccl.replayed == 1 ? "its" : "their"));
  if (replays && nccl.replayed == nccl.calls) return out + "Communication: " + *replays + "\n";
  const Ranks ranks = ranks_of(*s.job);
  const std::uint64_t each_ns =
      (timed ? nccl.device_ns : nccl.host_ns) / std::max<std::size_t>(ranks.known, 1);
  // The time of a few calls can't be put in relation to the run.
  const bool most = !timed || 10.0 * static_cast<double>(nccl.device_timed) >=
                                  9.0 * static_cast<double>(nccl.calls);
  const bool tells = exposure_tells(nccl);
  const std::string exposed = ratio(nccl.exposed_ns, nccl.exposure_known_ns);
  return out +
         filled(
             "Communication: {each} per rank on the {timed?device|host}[ ({exposed} exposed)][, "
             "{share} of the run][ (of {known:,} of {ranks:,} ranks)][; {of_few} of {few:,} of "
             "{few_timed:,} timed calls exposed, unknown for the others][; timed: {timed_calls:,} "
             "of {calls:,} calls]\n[(not in it: {replays})\n][(on the device: with "
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

std::string headline(const tables::Summary& s) {
  return what_moved(s) + own_cost(s);
}

}  // namespace tprof::report
