#include "report/header_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <set>

#include "interpose/format/schema.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using read::Process;

constexpr std::size_t kHostsShown = 16;

// "key  value", aligned.
void field(std::string& out, std::string_view key, const std::string& value) {
  out += fmt::format("  {:<9} {}\n", key, printable(value));
}

// NCCL_VERSION_CODE since 2.9 and CUDART_VERSION.
std::string nccl_version(std::int64_t v) {
  return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}
std::string cuda_version(std::int64_t v) {
  return fmt::format("{}.{}", v / 1000, v % 1000 / 10);
}

// One line per version and path that served: more than one means that ranks differ.
template <typename Version, typename Path, typename Print>
void libraries(std::string& out, const match::Job& job, std::string_view key,
               const Version& version, const Path& path, const Print& print) {
  std::map<std::string, std::vector<std::int64_t>> served;
  for (const Process* p : job.processes) {
    const std::optional<std::int64_t> v = p->header.*version;
    if (!v && (p->header.*path).empty()) continue;
    const std::string name = fmt::format("{}  {}", v ? print(*v) : "?", p->header.*path);
    served[name].push_back(p->header.rank.value_or(-1));
  }
  for (auto& [name, ranks_served] : served) {
    std::ranges::sort(ranks_served);
    field(out, key,
          served.size() == 1 ? name : fmt::format("{}  (ranks {})", name, ranges(ranks_served)));
  }
}

void settings(std::string& out, const match::Job& job, std::string_view key,
              std::map<std::string, std::string> read::Header::*values) {
  std::set<std::string> seen;
  for (const Process* p : job.processes) {
    for (const auto& [name, value] : p->header.*values)
      seen.insert(fmt::format("{}={}", name, value));
  }
  std::string line;
  for (const std::string& setting : seen) line += (line.empty() ? "" : " ") + setting;
  if (!line.empty()) field(out, key, line);
}

void hosts(std::string& out, const match::Job& job) {
  struct Host {
    std::vector<std::int64_t> ranks;
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
      host.ranks.push_back(*p->header.rank);
    } else {
      ++host.without_rank;
    }
    for (const read::Device& d : p->header.devices) host.devices.insert(d.device);
    if (p->lanes > 1) host.devices.insert(p->device);
  }
  std::size_t shown = 0;
  for (auto& [name, host] : hosts) {
    if (shown++ == kHostsShown) {
      field(out, "", fmt::format("and {} more hosts", hosts.size() - kHostsShown));
      break;
    }
    std::ranges::sort(host.ranks);
    host.ranks.erase(std::unique(host.ranks.begin(), host.ranks.end()), host.ranks.end());
    std::string line = name;
    if (!host.ranks.empty()) {
      line += fmt::format("  {} {}", host.ranks.size() == 1 ? "rank" : "ranks", ranges(host.ranks));
    }
    if (host.without_rank != 0) {
      line += fmt::format("  {} {} without a rank", host.without_rank,
                          host.without_rank == 1 ? "process" : "processes");
    }
    if (host.children != 0) {
      line +=
          fmt::format("  {} forked {}", host.children, host.children == 1 ? "child" : "children");
    }
    if (!host.devices.empty()) {
      line += fmt::format("  {} {}", host.devices.size() == 1 ? "GPU" : "GPUs",
                          ranges({host.devices.begin(), host.devices.end()}));
    }
    field(out, shown == 1 ? "where" : "", line);
  }
}

void times(std::string& out, const match::Job& job) {
  std::int64_t first = job.processes.front()->header.base_time_ns;
  std::int64_t last = first;
  for (const Process* p : job.processes) {
    first = std::min(first, p->header.base_time_ns);
    if (p->ledgers.empty()) continue;
    last = std::max(last, p->header.base_time_ns + p->ledgers.rbegin()->second.ts_ns);
  }
  const auto seconds = static_cast<std::time_t>(first / 1'000'000'000);
  field(out, "when",
        fmt::format("{:%F %T} UTC, {} from the first call to the end of tracing",
                    fmt::gmtime(seconds), duration(static_cast<std::uint64_t>(last - first))));
}

}  // namespace

std::string how_many(const std::vector<const Process*>& processes) {
  const auto n = static_cast<std::size_t>(
      std::ranges::count(processes, std::size_t{0}, [](const Process* p) { return p->lane; }));
  const std::string held = fmt::format("{} {}", n, n == 1 ? "process" : "processes");
  return n == processes.size() ? held : fmt::format("{} ranks in {}", processes.size(), held);
}

std::string header_text(const match::Job& job) {
  std::string out = fmt::format("tprof {}  {} {}\n", kVersion, job.run_id.empty() ? "an" : "run",
                                printable(job.label) + (job.run_id.empty() ? " run" : ""));
  std::set<std::string> commands;
  for (const Process* p : job.processes) commands.insert(p->header.command);
  field(out, "command",
        *commands.begin() + (commands.size() == 1
                                 ? ""
                                 : fmt::format("  (and {} other commands)", commands.size() - 1)));
  times(out, job);
  hosts(out, job);
  libraries(out, job, "NCCL", &read::Header::nccl_version, &read::Header::nccl_path, nccl_version);
  libraries(out, job, "CUDA", &read::Header::cudart_version, &read::Header::cudart_path,
            cuda_version);
  settings(out, job, "settings", &read::Header::config);
  settings(out, job, "env", &read::Header::env);
  return out;
}

}  // namespace tprof::report
