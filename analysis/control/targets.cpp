#include "control/targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <set>

#include "live/look.h"
#include "read/error.h"
#include "read/ring_file.h"

namespace tprof::control {

namespace fs = std::filesystem;

namespace {

std::vector<Target> of_folder(const fs::path& folder, const job::Choice& choice) {
  const live::Look look = live::look_at(folder, choice, read::Wanted::counts);
  if (!look.job) throw read::BadInput(look.why);
  const std::set<const read::Process*> ours(look.job->processes.begin(), look.job->processes.end());
  std::vector<Target> targets;
  for (const read::Trace& trace : look.traces.traces) {
    const read::Process& p = trace.processes.front();
    if (!ours.contains(&p) || p.end != read::End::running || p.forced) continue;
    const read::Header& h = p.header;
    const bool in_sight = h.boot_id == read::boot_id() && !h.ring.empty();
    targets.push_back({h.rank ? fmt::format("rank {}", *h.rank) : fmt::format("process {}", h.pid),
                       h.rank, h.host, h.pid,
                       in_sight ? read::ring_path(trace.source.file, h) : fs::path()});
  }
  if (targets.empty()) throw read::BadInput(folder, "no process of the job runs any more");
  return targets;
}

// Finds the ring file that the process has mapped, by the process's own view of the file system.
Target of_pid(std::int64_t pid) {
  const std::string process = fmt::format("/proc/{}", pid);
  std::ifstream maps(process + "/maps");
  if (!maps) {
    throw read::BadInput(process, fmt::format("{}: expected a process that this user may look at",
                                              std::strerror(errno)));
  }
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find('/');
    if (path == std::string::npos || !line.ends_with(".ring")) continue;
    const std::string ring = line.substr(path);
    if (!fs::path(ring).filename().string().starts_with('.')) continue;
    return {fmt::format("process {}", pid), std::nullopt, "", pid, process + "/root" + ring};
  }
  throw read::BadInput(process, "has no ring file mapped: it is not traced, or has ended tracing");
}

}  // namespace

std::vector<Target> targets_of(const fs::path& where, const job::Choice& choice) {
  const std::string name = where.string();
  std::int64_t pid = 0;
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  const bool number = error == std::errc() && rest == name.data() + name.size() && pid > 0;
  std::vector<Target> targets;
  if (!number || fs::is_directory(where)) return of_folder(where, choice);
  targets.push_back(of_pid(pid));
  return targets;
}

bool all_in_sight(const std::vector<Target>& targets) {
  return std::ranges::none_of(targets, [](const Target& t) { return t.ring.empty(); });
}

}  // namespace tprof::control
