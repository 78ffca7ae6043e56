#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <set>
#include <utility>

#include "check/ends.h"
#include "check/names.h"
#include "check/started.h"
#include "interpose/format/schema.h"
#include "report/report.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using text::printable;

using diagnose::Started;
using read::Process;

constexpr std::size_t kHostsShown = 16;

// Adds a line "key  value", aligned.
void field(std::string& out, std::string_view key, const std::string& value) {
  out += fmt::format("  {:<9} {}\n", key, printable(value));
}

// These take NCCL_VERSION_CODE, as it is since 2.9, and CUDART_VERSION.
std::string nccl_version(std::int64_t v) {
  return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}
std::string cuda_version(std::int64_t v) {
  return fmt::format("{}.{}", v / 1000, v % 1000 / 10);
}

// Adds one line per version and path that served. More than one means that ranks differ.
template <typename Version, typename Path, typename Print>
void libraries(std::string& out, const job::Job& job, std::string_view key, const Version& version,
               const Path& path, const Print& print) {
  std::map<std::string, diagnose::Processes> served;
  for (const Process* p : job.processes) {
    const std::optional<std::int64_t> v = p->header.*version;
    if (!v && (p->header.*path).empty()) continue;
    served[fmt::format("{}  {}", v ? print(*v) : "?", p->header.*path)].push_back(p);
  }
  for (const auto& [name, processes] : served) {
    field(out, key, name + (served.size() == 1 ? "" : "  (" + diagnose::names_of(processes) + ")"));
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
  std::map<std::string, diagnose::Processes> hosts;
  for (const Process* p : job.processes) hosts[p->header.host].push_back(p);
  std::size_t shown = 0;
  for (const auto& [name, processes] : hosts) {
    if (shown++ == kHostsShown) {
      field(out, "", "and " + diagnose::counted(hosts.size() - kHostsShown, "more host"));
      break;
    }
    std::set<std::int64_t> devices;
    for (const Process* p : processes) {
      devices.insert(p->header.devices.begin(), p->header.devices.end());
      if (p->lanes > 1) devices.insert(p->device);
    }
    std::string line = name + "  " + diagnose::names_of(processes);
    if (!devices.empty()) {
      line += fmt::format("  GPU{} {}", devices.size() == 1 ? "" : "s",
                          text::ranges({devices.begin(), devices.end()}));
    }
    field(out, shown == 1 ? "where" : "", line);
  }
}

}  // namespace

std::string how_many(const std::vector<const Process*>& processes) {
  const auto n = static_cast<std::size_t>(
      std::ranges::count(processes, std::size_t{0}, [](const Process* p) { return p->lane; }));
  const std::string held = diagnose::counted(n, "process");
  return n == processes.size() ? held : fmt::format("{} ranks in {}", processes.size(), held);
}

std::string heading(const stats::Summary& s) {
  const job::Job& job = *s.job;
  const auto [first, last] = diagnose::span_of(job.processes);
  // A rank may have started others, which have its number.
  const std::size_t n = job.processes.size();
  const std::string ranks = diagnose::counted(job.ranks.size(), "rank");
  const std::string processes = how_many(job.processes);
  const bool plain = std::ranges::all_of(
      job.processes, [](const Process* p) { return p->header.rank && p->lanes == 1; });
  std::set<std::string> hosts;
  for (const Process* p : job.processes) hosts.insert(p->header.host);
  std::string out = fmt::format(
      "{}{}: {} on {}, {:%F %T} UTC, {}\n", job.run_id.empty() ? "" : "run ", printable(job.label),
      plain ? ranks + (job.ranks.size() == n ? "" : ", " + processes) : processes,
      hosts.size() == 1 ? printable(*hosts.begin()) : diagnose::counted(hosts.size(), "host"),
      fmt::gmtime(static_cast<std::time_t>(first / 1'000'000'000)),
      diagnose::duration(last - first));
  if (!s.only.empty()) field(out, "filter", s.only.sentence());
  for (const std::string& note : s.notes) field(out, "", note);
  return out;
}

std::string details(const stats::Summary& s) {
  const job::Job& job = *s.job;
  std::string out;
  field(out, "tprof", kVersion);
  std::set<std::string> commands;
  for (const Process* p : job.processes) commands.insert(p->header.command);
  field(out, "command",
        *commands.begin() +
            (commands.size() == 1
                 ? ""
                 : "  (and " + diagnose::counted(commands.size() - 1, "other command") + ")"));
  hosts(out, job);
  libraries(out, job, "NCCL", &read::Header::nccl_version, &read::Header::nccl_path, nccl_version);
  libraries(out, job, "CUDA", &read::Header::cudart_version, &read::Header::cudart_path,
            cuda_version);
  const auto started = diagnose::started_with(job.processes);
  settings(out, "settings", started, Started::About::config);
  settings(out, "env", started, Started::About::env);
  if (s.self_run_ns != 0) {
    // The time that wrapped calls add is in the program's own threads.
    field(out, "cost",
          fmt::format(
              "tprof's own threads: {} of CPU, {:.2g}% of the time that the processes ran",
              text::duration(s.self_cost_ns),
              100 * static_cast<double>(s.self_cost_ns) / static_cast<double>(s.self_run_ns)));
  }
  return out;
}

}  // namespace tprof::report
