#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <set>
#include <utility>

#include "diagnose/ends.h"
#include "diagnose/names.h"
#include "diagnose/started.h"
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
  struct Host {
    diagnose::Processes ranks;
    std::set<std::int64_t> devices;
    std::size_t without_rank = 0;
    std::size_t children = 0;
  };
  std::map<std::string, Host> hosts;
  for (const Process* p : job.processes) {
    Host& host = hosts[p->header.host];
    if (read::is_child(*p)) {
      ++host.children;
    } else if (p->header.rank) {
      host.ranks.push_back(p);
    } else {
      ++host.without_rank;
    }
    host.devices.insert(p->header.devices.begin(), p->header.devices.end());
    if (p->lanes > 1) host.devices.insert(p->device);
  }
  std::size_t shown = 0;
  for (const auto& [name, host] : hosts) {
    if (shown++ == kHostsShown) {
      field(out, "", "and " + diagnose::counted(hosts.size() - kHostsShown, "more host"));
      break;
    }
    std::string line = name;
    if (!host.ranks.empty()) line += "  " + diagnose::names_of(diagnose::ranks_of(host.ranks));
    if (host.without_rank != 0)
      line += "  " + diagnose::counted(host.without_rank, "process") + " without a rank";
    if (host.children != 0) {
      line +=
          fmt::format("  {} forked {}", host.children, host.children == 1 ? "child" : "children");
    }
    if (!host.devices.empty()) {
      line += fmt::format("  GPU{} {}", host.devices.size() == 1 ? "" : "s",
                          text::ranges({host.devices.begin(), host.devices.end()}));
    }
    field(out, shown == 1 ? "where" : "", line);
  }
}

// This is the cost beside the calls. The time that wrapped calls add is in the
// program's own threads.
void self_cost(std::string& out, const stats::Summary& s) {
  if (s.self_run_ns == 0) return;
  field(
      out, "cost",
      fmt::format("tprof's own threads: {} of CPU, {:.2g}% of the time that the processes ran",
                  text::duration(s.self_cost_ns),
                  100 * static_cast<double>(s.self_cost_ns) / static_cast<double>(s.self_run_ns)));
}

}  // namespace

std::string how_many(const std::vector<const Process*>& processes) {
  const auto n = static_cast<std::size_t>(
      std::ranges::count(processes, std::size_t{0}, [](const Process* p) { return p->lane; }));
  const std::string held = diagnose::counted(n, "process");
  return n == processes.size() ? held : fmt::format("{} ranks in {}", processes.size(), held);
}

namespace {

// A rank may have started others, which have its number.
std::string ranks_or_processes(const job::Job& job) {
  const bool plain = std::ranges::all_of(
      job.processes, [](const Process* p) { return p->header.rank && p->lanes == 1; });
  if (!plain) return how_many(job.processes);
  const std::string ranks = diagnose::counted(job.ranks.size(), "rank");
  return job.ranks.size() == job.processes.size() ? ranks : ranks + ", " + how_many(job.processes);
}

}  // namespace

std::string heading(const stats::Summary& s) {
  const job::Job& job = *s.job;
  const auto [first, last] = diagnose::span_of(job.processes);
  std::set<std::string> hosts;
  for (const Process* p : job.processes) hosts.insert(p->header.host);
  std::string out = fmt::format(
      "{}{}: {} on {}, {:%F %T} UTC, {}\n", job.run_id.empty() ? "" : "run ", printable(job.label),
      ranks_or_processes(job),
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
  self_cost(out, s);
  return out;
}

}  // namespace tprof::report
