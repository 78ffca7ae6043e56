// Tells the state of a process, as its kernel has it, and leads with those that are stopped.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "check/diagnosis.h"
#include "check/ends.h"
#include "check/finding.h"
#include "read/ring_file.h"

namespace tprof::check {
namespace {

using read::End;
using read::Process;

// The header's times are of two clocks, one of which is read in ticks.
constexpr std::int64_t kApartNs = 100'000'000;

}  // namespace

std::string place_of_pid(const read::Header& h) {
  constexpr std::uint64_t kHosts = 4026531836;  // Linux: PROC_PID_INIT_INO
  const bool ours = h.pid_namespace == read::own_pid_namespace() && h.boot_id == read::boot_id();
  if (h.pid_namespace == kHosts || (h.pid_namespace != 0 && ours)) return h.host.str();
  return h.host + (h.pid_namespace == 0
                       ? " (inside its container, if it is in one: that is not known)"
                       : " (inside its container: it is not the host's pid)");
}

std::optional<char> state_here(const Process& p, const std::filesystem::path& proc) {
  if (p.end != End::running || !p.header.monotonic_ns) return std::nullopt;
  std::string boot;
  std::ifstream(proc / "sys/kernel/random/boot_id") >> boot;
  if (boot.empty() || boot != p.header.boot_id) return std::nullopt;
  const auto stat = read::proc_stat(p.header.pid, proc);
  if (!stat) return std::nullopt;
  const std::int64_t booted_ns = p.header.base_time_ns - *p.header.monotonic_ns;
  const auto started_ns =
      static_cast<std::int64_t>(stat->start_ticks) * (1'000'000'000 / sysconf(_SC_CLK_TCK));
  const bool same = std::abs(p.header.start_ns - booted_ns - started_ns) < kApartNs;
  return same ? std::optional(stat->state) : std::nullopt;
}

bool is_stopped(const Process& p) {
  const char state = state_here(p).value_or('?');
  return state == 'T' || state == 't';
}

void lead_with_stopped(const Case& c, std::size_t before, Findings& found) {
  const Processes stopped = select(c.job.processes, [&](const Process& p) {
    const auto idle = idle_ns(p, c);
    return idle && *idle >= c.options.stuck_after_ns && is_stopped(p);
  });
  if (stopped.empty()) return;
  std::string pids;
  for (const Process* p : stopped) {
    if (p->lane == 0) pids += (pids.empty() ? "" : " ") + std::to_string(p->header.pid);
  }
  const Process& first = *stopped[0];
  const bool traced = state_here(first) == 't';
  const std::int64_t since = *idle_since_ns(first, c);
  Findings lead;
  Finding& f = add(lead, Kind::hang, stopped);
  f.text = {Say::process_stopped,
            {{"who", stopped}, {"traced", traced}, {"quiet", before_end(first, since)}}};
  f.next = Fact{traced ? Say::let_go_of : Say::let_go_on,
                {{"pids", pids}, {"pid", first.header.pid}, {"host", first.header.host}}};
  f.time = TimeRange{since, std::max(since, end_ns(first))};
  for (std::size_t i = before; i < found.size(); ++i) tell_in(f, Say::meanwhile, found[i]);
  found.resize(before);
  found.push_back(std::move(f));
}

}  // namespace tprof::check
