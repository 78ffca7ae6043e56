#include "launch/beside.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include "check/names.h"
#include "interpose/format/settings.h"
#include "live/follow.h"
#include "live/shell.h"
#include "live/terminal.h"
#include "live/watchdog.h"
#include "read/error.h"
#include "read/folder.h"
#include "read/lines.h"
#include "read/ring_file.h"
#include "read/window_files.h"
#include "report/findings.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::launch {

namespace {

// Returns a variable as the library would read it: the default if the value is invalid.
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

// Executes the program; returns an exit code if that failed. Its own session shields it from the
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

// Watches until it is killed, since after its job another one may begin.
void watch(const std::string& command, std::chrono::nanoseconds stuck_after,
           const std::filesystem::path& folder, const std::string& run_id, pid_t ours) try {
  live::Signals signals;
  live::Watchdog dog(
      {.folder = folder,
       .choice = {run_id, 0},
       .command = command,
       .stuck_after = stuck_after,
       .tell =
           [](const check::Finding& f) {
             text::say("{}", report::to_text(f, report::Detail::full));
           },
       .wanted =
           [](const check::Finding& f) {
             return f.kind == check::Kind::hang || f.kind == check::Kind::group_order;
           },
       .is_ours = [ours](const live::Target& t) { return live::descends_from(t.pid, ours); }},
      signals.before());
  while (dog.look_until_over(signals, dog.often_enough()) &&
         signals.wait(dog.often_enough()) != live::Woken::end) {
  }
} catch (const std::exception& e) {
  text::say("tprof: --on-stuck: {}\n", text::printable(e.what()));
}

namespace fs = std::filesystem;

// The files of a run.
struct RunFiles {
  fs::path folder;
  live::FolderLines::Chosen chosen;  // selects files of the folder
};

// Calls f(file, lines) with the new lines of the run's files, until the job is over or f returns
// false.
template <typename F>
void follow(const RunFiles& run, int told, F&& f) {
  constexpr std::chrono::milliseconds kBetweenLooks{200};  // the writers' interval
  live::FolderLines files(run.folder, true, run.chosen);
  bool more = true;
  for (bool over = false; more && !over;) {
    over = live::at_end(told, kBetweenLooks);
    files.look(live::Format::jsonl, [&](const live::RankLines& file, const std::string& lines) {
      more = more && f(file, lines);
    });
  }
}

// Calls f(line), with its line break.
template <typename F>
void each_line(std::string_view lines, F&& f) {
  for (std::size_t end = 0; !lines.empty(); lines.remove_prefix(end)) {
    end = std::min(lines.find('\n'), lines.size() - 1) + 1;
    f(lines.substr(0, end));
  }
}

// A window's file named by a line. The line is written once the file has its final name.
struct Window {
  fs::path file;
  std::optional<read::Source> lines{};  // nullopt: it was deleted
};
std::optional<Window> window_in(std::string_view line, const live::RankLines& file) {
  const auto named = read::named_window(line);
  if (!named) return std::nullopt;
  read::Source rank_file{file.path(), read::Source{}.cut, {}};
  rank_file.windows_of = file.process()->header.base_time_ns;
  Window window{file.path().parent_path() / named->file,
                read::window_source(rank_file, named->file)};
  if (window.lines && window.lines->file != window.file) return std::nullopt;  // it is incomplete
  return window;
}

// Returns one of our own lines, which go between those of the files (live/README.md).
std::string event_line(const char* what, const std::vector<fs::path>& files) {
  nlohmann::ordered_json line = {{"handler", what}, {"files", nlohmann::ordered_json::array()}};
  for (const auto& file : files) line["files"].push_back(file.string());
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// Adds the lines that are only in the window's file.
template <typename Give>
void add_lines(const read::Source& source, std::string& given, Give&& give) try {
  read::BlockReader reader(source);
  for (read::Block block; reader.next(block); give()) {
    read::leave_events(block);
    read::each_line(block, [&](const read::Line& line) { (given += line.text) += '\n'; });
  }
} catch (const read::BadInput& e) {
  text::say("tprof: a handler misses the lines of a window: {}\n", text::printable(e.what()));
}

// `told`: a descriptor that reaches its end when the job is over and the files of its dead
// processes are complete. These functions return when the job and the user's commands have ended,
// and print a line on standard error for each failure.

// The command may run for `wait` after the job.
void feed_handler(const RunFiles& run, const std::string& command, std::chrono::nanoseconds wait,
                  int told, const sigset_t& mask) {
  live::Handler handler(command, wait, told, mask);
  std::set<fs::path> files;  // that it has been told about
  std::uint64_t deleted = 0;
  std::string given;
  bool takes_more = true;
  const auto give = [&] {
    takes_more = takes_more && handler.give(given);
    given.clear();
  };
  follow(run, told, [&](const live::RankLines& file, const std::string& lines) {
    if (files.insert(file.path()).second) given += event_line("open", {file.path()});
    each_line(lines, [&](std::string_view line) {
      given += line;
      const auto window = window_in(line, file);
      if (!window || !takes_more) return;
      files.insert(window->file);
      if (!window->lines) ++deleted;
      if (window->lines) add_lines(*window->lines, given, give);
      given += event_line("window", {window->file});
    });
    give();
    return takes_more;
  });
  std::erase_if(files, [](const fs::path& file) {
    std::error_code error;
    return !fs::exists(file, error);
  });
  if (takes_more) handler.give(event_line("close", {files.begin(), files.end()}));
  std::string said = handler.end();
  if (deleted != 0) {
    said += fmt::format("{}{} of windows {} deleted before it had read {} lines",
                        said.empty() ? "" : "; ", check::counted(deleted, "file"),
                        deleted == 1 ? "was" : "were", deleted == 1 ? "its" : "their");
  }
  if (!said.empty()) text::say("tprof: --handler {}: {}\n", text::printable(command), said);
}

// Runs the command for each window's file, and keeps the last files of each rank, besides those for
// which the command failed.
void feed_window_commands(const RunFiles& run, const UserPrograms& programs, int told,
                          const sigset_t& mask) {
  const auto succeeds = [&](const fs::path& file) {
    if (programs.on_window.empty()) return true;
    const std::string command =
        text::replaced(programs.on_window, {{"{}", text::shell_word(file.string())}});
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int status = live::run_in_shell(command, nothing, mask, live::Group::own);
    if (nothing >= 0) close(nothing);
    if (status == 0) return true;
    text::say("tprof: --on-window {}: {}\n", text::printable(command), live::how_it_ended(status));
    return false;
  };
  std::map<std::string, std::deque<fs::path>> here;  // by rank
  bool any_line = false;
  bool any_file = false;
  std::uint64_t deleted = 0;
  follow(run, told, [&](const live::RankLines& file, const std::string& lines) {
    const auto& rank = file.process()->header.rank;
    std::deque<fs::path>& files = here[rank ? std::to_string(*rank) : file.path().string()];
    each_line(lines, [&](std::string_view line) {
      const auto window = window_in(line, file);
      if (!window || !window->lines) return;
      any_file = true;
      if (!succeeds(window->file) || programs.keep_windows < 0) return;
      files.push_back(window->file);
      for (; files.size() > static_cast<std::size_t>(programs.keep_windows); files.pop_front()) {
        std::error_code error;
        if (fs::remove(files.front(), error)) ++deleted;
        if (!error) continue;
        text::say("tprof: --keep-windows: {}: {}\n", text::printable(files.front().string()),
                  error.message());
      }
    });
    return any_line = true;
  });
  if (!any_file && any_line) {
    text::say(
        "tprof: no window had a file: TPROF_WINDOW_FILES=1 and TPROF_SCHEDULE ask for them\n");
  }
  if (deleted != 0 && !programs.quiet) {
    text::say("tprof: --keep-windows: {} of windows {} deleted\n",
              check::counted(deleted, "older file"), deleted == 1 ? "was" : "were");
  }
}

// Selects new files of this run's processes on this machine. If a launch has several tasks, each
// gets the files of its own command, which is known only while the parent of the processes still
// runs.
live::FolderLines::Chosen files_of(const fs::path& folder, const std::string& run_id,
                                   const Launch& launch) {
  std::set<fs::path> before;
  for (const read::TraceFile& file : read::files_in(folder)) before.insert(file.path);
  return [=, here = read::boot_id(), ours = getpid()](const fs::path& file,
                                                      const read::Header& header) {
    const bool of_run = header.run_id == run_id && header.boot_id == here;
    if (!of_run || !header.window_of.empty() || before.contains(file)) return false;
    const auto& by = header.launcher;
    const bool known =
        by && read::process_lives(by->pid, static_cast<std::uint64_t>(by->start_ticks));
    return !launch.task || !known || live::descends_from(by->pid, ours);
  };
}

// A signal that ends the command must not end these processes, as the last lines are still to come.
void run_beside(const std::function<void(int told, const sigset_t& mask)>& work, int told) try {
  sigset_t held;
  sigset_t before;
  sigfillset(&held);
  sigprocmask(SIG_BLOCK, &held, &before);
  std::signal(SIGCHLD, SIG_DFL);       // if it were ignored, there would be no wait status
  dup2(STDERR_FILENO, STDOUT_FILENO);  // standard output belongs to the command
  work(told, before);
} catch (const std::exception& e) {
  text::say("tprof: handlers: {}\n", text::printable(e.what()));
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
  // A hanging driver would make waiting endless, so closing the socket ends it.
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

children::Child watch_for_stuck(const std::string& command, std::chrono::nanoseconds stuck_after,
                                const fs::path& folder, const std::string& run_id) {
  if (command.empty()) return {};
  const auto work = [&, parent = getpid()] {
    dup2(STDERR_FILENO, STDOUT_FILENO);  // standard output belongs to the command
    watch(command, stuck_after, folder, run_id, parent);
    return 0;
  };
  return children::Child(work, children::Child::Orphan::dies);
}

void UserProcesses::start(std::vector<UserProcess>& processes, const Work& work) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::runtime_error(fmt::format("socketpair: {}", std::strerror(errno)));
  }
  children::Child child([&] {
    for (const auto* others : {&handlers_, &windows_}) {
      for (const UserProcess& other : *others) close(other.tells);
    }
    close(ends[1]);
    run_beside(work, ends[0]);
    return 0;
  });
  const int error = errno;
  close(ends[0]);
  if (child.pid() > 0) return processes.push_back({std::move(child), ends[1]});
  close(ends[1]);
  throw std::runtime_error(fmt::format("fork: {}", std::strerror(error)));
}

UserProcesses::UserProcesses(const UserPrograms& programs, const fs::path& folder,
                             const std::string& run_id, const Launch& launch) {
  const bool windows = !programs.on_window.empty() || programs.keep_windows >= 0;
  if (programs.handlers.empty() && !windows) return;
  const fs::path whole = fs::absolute(folder);  // handlers get absolute paths
  const RunFiles run{whole, files_of(whole, run_id, launch)};
  for (const std::string& command : programs.handlers) {
    start(handlers_, [&](int told, const sigset_t& mask) {
      feed_handler(run, command, programs.wait, told, mask);
    });
  }
  if (!windows) return;
  start(windows_,
        [&](int told, const sigset_t& mask) { feed_window_commands(run, programs, told, mask); });
}

// Shuts the sockets down, since closing is not enough: processes started later hold them too.
void UserProcesses::end() {
  for (auto* processes : {&windows_, &handlers_}) {
    for (const UserProcess& feeder : *processes) shutdown(feeder.tells, SHUT_RDWR);
    for (UserProcess& feeder : *processes) {
      close(feeder.tells);
      const int status = feeder.process.wait();
      if (status == 0) continue;
      text::say("tprof: the process that feeds handlers {}\n", live::how_it_ended(status));
    }
    processes->clear();
  }
}

}  // namespace tprof::launch
