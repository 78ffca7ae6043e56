#include "launch/feed.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>

#include "check/names.h"
#include "live/follow.h"
#include "live/handler.h"
#include "live/on_finding.h"
#include "live/shell.h"
#include "read/error.h"
#include "read/folder.h"
#include "read/lines.h"
#include "read/ring_file.h"
#include "read/window_files.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::launch {
namespace {

namespace fs = std::filesystem;

// The files of a run.
struct RunFiles {
  fs::path folder;
  live::FolderLines::Chosen chosen;  // which files of the folder
};

// Calls f(file, lines) for what the run's files have gained, until the job is over or it returns
// false.
template <typename F>
void follow(const RunFiles& run, int told, F&& f) {
  constexpr std::chrono::milliseconds kBetweenLooks{200};  // as often as writers write
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

// A window's file that a line names. The line is written when the file has its final name.
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
  if (window.lines && window.lines->file != window.file) return std::nullopt;  // it is not whole
  return window;
}

// Returns a line of ours between those of the files; live/README.md describes it.
std::string event_line(const char* what, const std::vector<fs::path>& files) {
  nlohmann::ordered_json line = {{"handler", what}, {"files", nlohmann::ordered_json::array()}};
  for (const auto& file : files) line["files"].push_back(file.string());
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// A handler, and what it was told of.
class FedHandler {
 public:
  FedHandler(const std::string& command, std::chrono::nanoseconds wait, int told,
             const sigset_t& mask)
      : handler_(command, wait, told, mask) {}

  // Returns false if it takes no more.
  bool take(const live::RankLines& file, const std::string& lines) {
    std::string given;
    const auto give = [&] {
      takes_more_ = takes_more_ && handler_.give(given);
      given.clear();
    };
    if (files_.insert(file.path()).second) given += event_line("open", {file.path()});
    each_line(lines, [&](std::string_view line) {
      given += line;
      const auto window = window_in(line, file);
      if (!window || !takes_more_) return;
      files_.insert(window->file);
      if (!window->lines) ++deleted_;
      if (window->lines) add_lines(*window->lines, given, give);
      given += event_line("window", {window->file});
    });
    give();
    return takes_more_;
  }

  // Returns what there is to say about it.
  std::string end() {
    std::vector<fs::path> here;
    std::ranges::copy_if(files_, std::back_inserter(here), [](const fs::path& file) {
      std::error_code error;
      return fs::exists(file, error);
    });
    if (takes_more_) handler_.give(event_line("close", here));
    std::string said = handler_.end();
    if (deleted_ == 0) return said;
    return said + fmt::format("{}{} of windows {} deleted before it read {} lines",
                              said.empty() ? "" : "; ", check::counted(deleted_, "file"),
                              deleted_ == 1 ? "was" : "were", deleted_ == 1 ? "its" : "their");
  }

 private:
  // Adds the lines that only the window's file has.
  template <typename Give>
  static void add_lines(const read::Source& source, std::string& given, Give&& give) try {
    read::BlockReader reader(source);
    for (read::Block block; reader.next(block); give()) {
      read::leave_events(block);
      read::each_line(block, [&](const read::Line& line) { (given += line.text) += '\n'; });
    }
  } catch (const read::BadInput& e) {
    text::say("tprof: a handler does not get the lines of a window: {}\n",
              text::printable(e.what()));
  }

  live::Handler handler_;
  bool takes_more_ = true;
  std::set<fs::path> files_;
  std::uint64_t deleted_ = 0;
};

// `told` is a descriptor that is at its end when the job is over and the files of its dead
// processes are whole. These return when the job and the user's commands have ended, and print a
// line on standard error for what failed.

// The command has `wait` to end behind the job.
void feed_handler(const RunFiles& run, const std::string& command, std::chrono::nanoseconds wait,
                  int told, const sigset_t& mask) {
  FedHandler handler(command, wait, told, mask);
  follow(run, told, [&](const live::RankLines& file, const std::string& lines) {
    return handler.take(file, lines);
  });
  const std::string said = handler.end();
  if (said.empty()) return;
  text::say("tprof: --handler {}: {}\n", text::printable(command), said);
}

// Runs the command for each window's file, and keeps the last ones of a rank.
void feed_window_commands(const RunFiles& run, const Fed& fed, int told, const sigset_t& mask) {
  const auto keep =
      fed.keep_windows < 0 ? std::nullopt : std::optional<std::uint64_t>(fed.keep_windows);
  live::WindowCommands windows(fed.on_window, keep, mask);
  bool any_line = false;
  follow(run, told, [&](const live::RankLines& file, const std::string& lines) {
    const auto& rank = file.process()->header.rank;
    each_line(lines, [&](std::string_view line) {
      const auto window = window_in(line, file);
      if (!window || !window->lines) return;
      windows.take(rank ? std::to_string(*rank) : file.path().string(), window->file);
    });
    return any_line = true;
  });
  if (windows.files() == 0 && any_line) {
    text::say(
        "tprof: no window had a file: TPROF_WINDOW_FILES=1 and TPROF_SCHEDULE ask for them\n");
  }
  if (windows.deleted() != 0 && !fed.quiet) {
    text::say("tprof: --keep-windows: {} of windows {} deleted\n",
              check::counted(windows.deleted(), "older file"),
              windows.deleted() == 1 ? "was" : "were");
  }
}

// Selects files of this run's processes on this machine that were not there before. If a launch has
// several tasks, each gets the files of its own command. That is known only while the process that
// started them still runs.
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

// A signal that ends the command must not end these processes: the last lines are still to come.
void run_beside(const std::function<void(int told, const sigset_t& mask)>& work, int told) try {
  sigset_t held;
  sigset_t before;
  sigfillset(&held);
  sigprocmask(SIG_BLOCK, &held, &before);
  std::signal(SIGCHLD, SIG_DFL);       // if ignored, it would take the wait status from us
  dup2(STDERR_FILENO, STDOUT_FILENO);  // standard output is the command's
  work(told, before);
} catch (const std::exception& e) {
  text::say("tprof: handlers: {}\n", text::printable(e.what()));
}

}  // namespace

void Feeding::start(std::vector<Feeder>& feeders, const Work& work) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::runtime_error(fmt::format("socketpair: {}", std::strerror(errno)));
  }
  children::Child child([&] {
    for (const auto* others : {&handlers_, &windows_}) {
      for (const Feeder& other : *others) close(other.tells);
    }
    close(ends[1]);
    run_beside(work, ends[0]);
    return 0;
  });
  const int error = errno;
  close(ends[0]);
  if (child.pid() > 0) return feeders.push_back({std::move(child), ends[1]});
  close(ends[1]);
  throw std::runtime_error(fmt::format("fork: {}", std::strerror(error)));
}

Feeding::Feeding(const Fed& fed, const fs::path& folder, const std::string& run_id,
                 const Launch& launch) {
  const bool windows = !fed.on_window.empty() || fed.keep_windows >= 0;
  if (fed.handlers.empty() && !windows) return;
  const fs::path whole = fs::absolute(folder);  // handlers are told absolute paths
  const RunFiles run{whole, files_of(whole, run_id, launch)};
  for (const std::string& command : fed.handlers) {
    start(handlers_, [&](int told, const sigset_t& mask) {
      feed_handler(run, command, fed.wait, told, mask);
    });
  }
  if (!windows) return;
  start(windows_,
        [&](int told, const sigset_t& mask) { feed_window_commands(run, fed, told, mask); });
}

// Processes that were started later hold these sockets too, so that closing them would not do.
void Feeding::end() {
  for (auto* feeders : {&windows_, &handlers_}) {
    for (const Feeder& feeder : *feeders) shutdown(feeder.tells, SHUT_RDWR);
    for (Feeder& feeder : *feeders) {
      close(feeder.tells);
      const int status = feeder.process.wait();
      if (status == 0) continue;
      text::say("tprof: the process that feeds handlers {}\n", live::how_it_ended(status));
    }
    feeders->clear();
  }
}

}  // namespace tprof::launch
