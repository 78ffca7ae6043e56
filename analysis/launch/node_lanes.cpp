#include "launch/node_lanes.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "children/child.h"
#include "interpose/format/settings.h"
#include "launch/environment.h"
#include "read/ring_file.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::launch {
namespace {

// Returns what the library would take a variable for: its default if the value is not accepted.
template <typename T, typename Parse>
T value_of(const doctor::Settings& settings, Setting setting, Parse&& parse) {
  const std::string name(info(setting).name);
  std::string text = process_env(name.c_str());
  for (const auto& [key, value] : settings) {
    if (key == name) text = value;
  }
  T value{};
  if (text.empty() || !parse(text, value)) parse(info(setting).fallback, value);
  return value;
}

// Becomes the program; returns an exit code if that failed. A session of its own keeps it from the
// command's signals.
int become_node(const std::vector<std::string>& command, int told) {
  setsid();
  const int nothing = open("/dev/null", O_WRONLY);
  dup2(told, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  dup2(told, STDERR_FILENO);
#ifdef SYS_close_range
  syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0);
#endif
  doctor::become(command, {{"LD_PRELOAD", ""}});
  text::say("tprof: TPROF_METRICS: no lanes of the host: {}: {}\n", command[0],
            std::strerror(errno));
  return 1;
}

}  // namespace

NodeLanes::NodeLanes(const std::filesystem::path& library, const std::filesystem::path& folder,
                     const std::string& run_id, const doctor::Settings& settings) {
  const auto metrics = value_of<MetricsWanted>(settings, Setting::metrics, parse_metrics);
  const auto events = value_of<EventLines>(settings, Setting::events, parse_events);
  const auto off = value_of<bool>(settings, Setting::disable, parse_switch);
  if (metrics.every_ns == 0 || events == EventLines::off || off) return;
  const std::string asked = process_env("TPROF_METRICS");
  with_gpus_ = metrics.gpus;
  of_processes_ = asked.substr(0, asked.size() - (metrics.gpus ? kAndGpus.size() : 0));
  const auto quota = value_of<std::uint64_t>(settings, Setting::quota, parse_bytes);
  const std::vector<std::string> command = {(library.parent_path() / "tprof-node").string(),
                                            std::filesystem::absolute(folder).string(),
                                            run_id,
                                            host_name(),
                                            read::boot_id(),
                                            asked,
                                            std::to_string(quota)};
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  // A driver may hang, and then nobody could wait for it: the socket's end ends it.
  children::Child([&] { return become_node(command, ends[1]); }).let_go();
  close(ends[1]);
  told_ = ends[0];
}

bool NodeLanes::end() {
  using Clock = std::chrono::steady_clock;
  if (told_ < 0) return false;
  shutdown(told_, SHUT_WR);
  const auto until = Clock::now() + std::chrono::seconds(2);
  std::string said;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd answer{told_, POLLIN, 0};
    const int ready = poll(&answer, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready < 0 && errno == EINTR) continue;
    char part[4096];
    const ssize_t n = ready > 0 ? ::read(told_, part, sizeof part) : 0;
    if (n <= 0) break;
    said.append(part, static_cast<std::size_t>(n));
  }
  close(told_);
  told_ = -1;
  for (const std::string_view line : text::split(said, '\n')) {
    if (!line.empty()) text::say("{}\n", text::printable(line));
  }
  return true;
}

}  // namespace tprof::launch
