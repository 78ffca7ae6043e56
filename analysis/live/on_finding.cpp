#include "live/on_finding.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "live/shell.h"
#include "read/ring_file.h"
#include "report/findings.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::live {
namespace {

constexpr std::string_view kPid = "{pid}";
constexpr std::string_view kRank = "{rank}";
constexpr std::size_t kMostTargets = 16;

bool contains(const std::string& text, std::string_view word) {
  return text.find(word) != std::string::npos;
}

std::string json_of(const ToTell& told) {
  nlohmann::ordered_json j = report::to_json({*told.finding}, report::Detail::full)[0];
  auto& processes = j["processes"] = nlohmann::json::array();
  for (const Target& t : told.targets) processes.push_back({{"rank", t.rank}, {"pid", t.pid}});
  return j.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

// Returns a file without a name, at its beginning. A pipe might be full, or read by nobody.
int file_of(const std::string& text) {
  const int fd = memfd_create("tprof-finding", MFD_CLOEXEC);
  const bool whole =
      fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!whole || lseek(fd, 0, SEEK_SET) != 0) {
    throw std::runtime_error(fmt::format("memfd_create: {}", std::strerror(errno)));
  }
  return fd;
}

void run(const std::string& command, const std::string& input, const sigset_t& mask) {
  const int fd = file_of(input);
  const int status = run_in_shell(command, fd, mask, Group::ours);
  close(fd);
  if (status == 0) return;
  text::say("tprof: {}: {}\n", text::printable(command), how_it_ended(status));
}

}  // namespace

std::vector<Target> targets_of(const check::Finding& finding, const job::Job& job) {
  std::vector<Target> targets;
  const std::string here = read::boot_id();
  const std::uint64_t pids = read::own_pid_namespace();
  for (const read::Process* p : job.processes) {
    const read::Header& h = p->header;
    const bool runs = p->end == read::End::running && !p->snapshot && h.boot_id == here;
    // A command could not use the pid of another container.
    if (h.pid_namespace != 0 && h.pid_namespace != pids) continue;
    if (!runs || !h.rank || !finding.ranks.contains(*h.rank)) continue;
    if (std::ranges::count(targets, h.pid, &Target::pid) != 0) continue;  // of several ranks
    if (targets.size() < kMostTargets) targets.push_back({*h.rank, h.pid});
  }
  return targets;
}

bool descends_from(std::int64_t pid, std::int64_t ancestor) {
  while (pid > 1 && pid != ancestor) {
    const auto stat = read::proc_stat(pid);
    pid = stat ? stat->parent : 0;
  }
  return pid == ancestor;
}

bool run_for(const std::string& command, const std::vector<ToTell>& findings,
             const sigset_t& mask) {
  if (!contains(command, kPid) && !contains(command, kRank)) {
    std::string input;
    for (const ToTell& f : findings) input += json_of(f);
    run(command, input, mask);
    return true;
  }
  bool any = false;
  for (const ToTell& f : findings) {
    for (const Target& t : f.targets) {
      const std::string with_pid = filled_in(command, kPid, std::to_string(t.pid));
      run(filled_in(with_pid, kRank, std::to_string(t.rank)), json_of(f), mask);
      any = true;
    }
  }
  return any;
}

}  // namespace tprof::live
