#include "launch/torch_profiler.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <system_error>

#include "interpose/format/schedule.h"
#include "launch/environment.h"
#include "read/error.h"
#include "read/load.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::launch {

namespace fs = std::filesystem;

namespace {

// CUPTI starts in the last step before the window.
constexpr std::int64_t kLeastFirst = 3;

constexpr std::string_view kOption = "--with-torch-profiler";
// Names in the folder of the sockets, suited to libkineto's parser and path limits.
constexpr const char* kTraces = "traces";  // a link to where traces are collected
constexpr const char* kStem = "kineto";    // libkineto appends _PID
constexpr const char* kBase = "kineto.conf";
constexpr const char* kAsked = "asked";
constexpr const char* kSystemConfig = "/etc/libkineto.conf";

void say(std::string_view what) {
  text::say("tprof: {}: {}\n", kOption, text::printable(what));
}

std::string trace_of(std::int32_t pid) {
  return fmt::format("{}_{}.json", kStem, pid);
}

// Returns a libkineto configuration for a process.
std::string kineto_config(const TorchSteps& steps, const std::filesystem::path& trace) {
  // libkineto's first step is 0, and a window begins where its step has ended. Without a duration
  // it never ends by the clock.
  return fmt::format(
      "ACTIVITIES_LOG_FILE={}\nPROFILE_START_ITERATION={}\nACTIVITIES_WARMUP_ITERATIONS=1\n"
      "ACTIVITIES_ITERATIONS={}\nACTIVITIES_DURATION_MSECS=0\n",
      trace.string(), steps.first - 2, steps.last - steps.first + 1);
}

// Precedes each message: length and type of the rest.
struct Head {
  std::uint64_t size = 0;
  char type[32] = {};
};
// The rest of a request, followed by pids: the process's own, then its ancestors'.
struct Request {
  std::int32_t type = 0;
  std::int32_t pids = 0;
  std::int64_t job = 0;
};
constexpr std::string_view kRequest = "req";
constexpr std::string_view kDaemon = "dynolog";
constexpr std::int32_t kMayTrace = 2;  // a bit of its type
constexpr std::size_t kLongest = 65536;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// Returns the socket for KINETO_IPC_SOCKET_DIR. Its name has to be short, since libkineto copies it
// unchecked.
int socket_in(const fs::path& folder) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  (folder / kDaemon).string().copy(name.sun_path, sizeof name.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("socket");
  if (bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) fail("bind");
  return fd;
}

// Returns the answer to a process; empty: nothing to do. The process ignores a configuration that
// it already has, but forgets one from before its first step, so each request gets it.
std::string work_for(const KinetoRequest& asked, const fs::path& sockets, const TorchSteps& steps) {
  std::ofstream(sockets / kAsked).flush();
  const fs::path trace = sockets / kTraces / trace_of(asked.pid);
  const bool done = fs::exists(trace) || fs::exists(trace.string() + ".tmp");
  if (!asked.may_trace || done) return "";
  return kineto_config(steps, sockets / kTraces / fmt::format("{}.json", kStem));
}

// Answers until it is killed.
void serve(const fs::path& sockets, const TorchSteps& steps) try {
  const int fd = socket_in(sockets);
  const char ready = 0;
  (void)!::write(STDOUT_FILENO, &ready, 1);
  for (std::string message;;) {
    message.resize(kLongest);
    sockaddr_un from{};
    socklen_t size = sizeof from;
    auto* sender = reinterpret_cast<sockaddr*>(&from);
    const ssize_t n = recvfrom(fd, message.data(), message.size(), 0, sender, &size);
    if (n < 0 && errno != EINTR) fail("recvfrom");
    message.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    const auto asked = kineto_request(message);
    if (!asked) continue;
    const std::string answer = kineto_answer(work_for(*asked, sockets, steps));
    // The process may be gone. If it is not, it asks again.
    sendto(fd, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL, sender, size);
  }
} catch (const std::exception& e) {
  say(e.what());
}

}  // namespace

std::optional<KinetoRequest> kineto_request(std::string_view message) {
  Head head;
  Request request;
  KinetoRequest asked;
  if (message.size() < sizeof head + sizeof request + sizeof asked.pid) return std::nullopt;
  std::memcpy(&head, message.data(), sizeof head);
  message.remove_prefix(sizeof head);
  const std::string_view type(head.type, strnlen(head.type, sizeof head.type));
  if (type != kRequest || head.size != message.size()) return std::nullopt;
  std::memcpy(&request, message.data(), sizeof request);
  std::memcpy(&asked.pid, message.data() + sizeof request, sizeof asked.pid);
  if (request.pids < 1) return std::nullopt;
  asked.may_trace = (request.type & kMayTrace) != 0;
  return asked;
}

std::string kineto_answer(std::string_view config) {
  Head head{config.size(), {}};
  kRequest.copy(head.type, sizeof head.type);
  return std::string(reinterpret_cast<const char*>(&head), sizeof head).append(config);
}

TorchSteps torch_steps(std::string_view text) {
  constexpr std::int64_t kLastStep = 1'000'000'000;
  const std::vector<std::string_view> ends = text::split(text, '-');
  const TorchSteps steps = {text::number<std::int64_t>(ends.front()).value_or(0),
                            text::number<std::int64_t>(ends.back()).value_or(0)};
  if (ends.size() <= 2 && steps.first >= kLeastFirst && steps.last >= steps.first &&
      steps.last <= kLastStep) {
    return steps;
  }
  throw read::BadInput(fmt::format(
      "--torch-steps: expected steps from {} on, such as 10-12, found '{}'", kLeastFirst, text));
}

TorchSteps torch_steps_of(const std::string& asked, const std::string& schedule) {
  if (!asked.empty()) return torch_steps(asked);
  Schedule s;
  if (!parse_schedule(schedule, s) || s.by != WindowsBy::steps) return {};
  const std::uint64_t wait = s.skip_first_wait != 0 ? 0 : s.wait;
  const auto before = static_cast<std::int64_t>(s.skip_first + wait + s.warmup);
  const std::int64_t first = std::max(before + 1, kLeastFirst);
  return {first, std::max(first, before + static_cast<std::int64_t>(s.active))};
}

fs::path free_name(const fs::path& folder, const std::string& stem, const std::string& end) {
  fs::path name = folder / (stem + end);
  for (int n = 1; fs::exists(name); ++n) name = folder / fmt::format("{}.{}{}", stem, n, end);
  return name;
}

TorchProfiler::TorchProfiler(const std::string& steps, const fs::path& folder)
    : steps_(torch_steps_of(steps, process_env("TPROF_SCHEDULE"))) {
  for (const char* name : {"KINETO_USE_DAEMON", "KINETO_IPC_SOCKET_DIR"}) {
    if (process_env(name).empty()) continue;
    say(fmt::format("{} is already set, so PyTorch's profiler is left to that daemon", name));
    return;
  }
  std::string name = "/tmp/tprof-XXXXXX";  // libkineto limits its length
  if (mkdtemp(name.data()) == nullptr) {
    say("no folder can be made in /tmp, so PyTorch's profiler is not started");
    return;
  }
  const fs::path sockets = name;
  traces_ = fs::absolute(folder) / "torch" / sockets.filename();
  fs::create_directories(traces_);
  fs::create_directory_symlink(traces_, sockets / kTraces);
  settings_ = {{"KINETO_USE_DAEMON", "1"}, {"KINETO_IPC_SOCKET_DIR", sockets}};
  // Silences PyTorch's profiler, which would print its configuration, and on machines without us
  // complain every few seconds that nobody answers.
  if (process_env("KINETO_LOG_LEVEL").empty()) settings_.emplace_back("KINETO_LOG_LEVEL", "5");
  if (process_env("KINETO_CONFIG").empty() && !fs::exists(kSystemConfig)) {
    // Makes it ask every second instead of every five.
    std::ofstream(sockets / kBase) << "ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n";
    settings_.emplace_back("KINETO_CONFIG", sockets / kBase);
  }
  sockets_ = sockets;
  if (!start()) settings_.clear();
}

bool TorchProfiler::start() {
  int ends[2];
  if (pipe(ends) != 0) return false;
  const auto work = [&] {
    close(ends[0]);
    dup2(ends[1], STDOUT_FILENO);  // standard output is the command's
    close(ends[1]);
    // A signal that ends the command must not end this process.
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) std::signal(signal, SIG_IGN);
    serve(sockets_, steps_);
    return 0;
  };
  child_ = children::Child(work, children::Child::Orphan::dies);
  close(ends[1]);
  // Waits for the socket, which has to exist before the command starts.
  char ready = 0;
  const bool serves = child_.pid() > 0 && ::read(ends[0], &ready, 1) == 1;
  close(ends[0]);
  return serves;
}

TorchProfiler::~TorchProfiler() {
  child_.stop();
  std::error_code ignored;
  if (!traces_.empty()) {
    fs::remove(traces_, ignored);  // both are kept if not empty
    fs::remove(traces_.parent_path(), ignored);
  }
  if (!sockets_.empty()) fs::remove_all(sockets_, ignored);
}

std::vector<TorchTrace> TorchProfiler::collect(const std::vector<read::TraceFile>& ranks) {
  if (sockets_.empty() || settings_.empty()) return {};
  child_.stop();
  std::vector<TorchTrace> found;
  for (const read::TraceFile& file : ranks) {
    const auto header = read::beginning_of(file.path).header;
    if (!header || !header->window_of.empty()) continue;
    const fs::path trace = traces_ / trace_of(static_cast<std::int32_t>(header->pid));
    std::error_code error;
    if (!fs::exists(trace, error)) continue;
    const fs::path to = free_name(traces_.parent_path(), file.path.stem().string(), ".json");
    fs::rename(trace, to, error);
    if (!error) found.push_back({file.path, to});
  }
  if (!found.empty()) return found;
  if (!fs::exists(sockets_ / kAsked)) {
    say("no process asked for it: there is no PyTorch, or its profiler supports no daemon");
  } else {
    say(
        fmt::format("PyTorch's profiler was asked for steps {}-{} of the optimizers (it polls "
                    "rarely), but wrote no trace",
                    steps_.first, steps_.last));
  }
  return {};
}

}  // namespace tprof::launch
