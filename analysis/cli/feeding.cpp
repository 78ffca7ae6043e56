#include "cli/feeding.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <set>
#include <stdexcept>

#include "cli/look.h"
#include "launch/feed.h"
#include "live/on_finding.h"
#include "live/shell.h"
#include "read/ring_file.h"
#include "text/text.h"

namespace tprof::cli {
namespace {

bool asked(const Options& o) {
  return !o.handlers.empty() || !o.on_window.empty() || o.keep_windows >= 0;
}

// Selects files of this run's processes on this machine that were not there before. If a launch has
// several tasks, each gets the files of its own command. That is known only while the process that
// started them still runs.
live::FolderLines::Chosen files_of(const fs::path& folder, const std::string& run_id,
                                   const launch::Launch& launch) {
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

void feed(const launch::Fed& fed, int told, bool quiet) try {
  // A signal that ends the command must not end this process: the last lines are still to come.
  sigset_t held;
  sigset_t before;
  sigfillset(&held);
  sigprocmask(SIG_BLOCK, &held, &before);
  std::signal(SIGCHLD, SIG_DFL);  // if ignored, it would take the wait status from us
  launch::Feed feed(fed, told, before);
  feed.until_the_end();
  feed.report(quiet);
} catch (const std::exception& e) {
  fmt::print(stderr, "tprof: handlers: {}\n", text::printable(e.what()));
}

}  // namespace

Feeding::Feeding(const Options& o, const fs::path& folder, const std::string& run_id,
                 const launch::Launch& launch) {
  if (!asked(o)) return;
  const fs::path whole = fs::absolute(folder);  // handlers are told absolute paths
  const launch::Fed fed = {.handlers = o.handlers,
                           .handler_wait = seconds(o.handler_wait_s),
                           .on_window = o.on_window,
                           .keep_windows = o.keep_windows < 0
                                               ? std::nullopt
                                               : std::optional<std::uint64_t>(o.keep_windows),
                           .folder = whole,
                           .chosen = files_of(whole, run_id, launch)};
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::runtime_error(fmt::format("socketpair: {}", std::strerror(errno)));
  }
  std::fflush(nullptr);
  child_ = fork();
  if (child_ == 0) {
    close(ends[1]);
    dup2(STDERR_FILENO, STDOUT_FILENO);  // standard output is the command's
    feed(fed, ends[0], o.quiet);
    std::fflush(nullptr);
    _exit(0);
  }
  const int error = errno;
  close(ends[0]);
  tells_ = ends[1];
  if (child_ < 0) throw std::runtime_error(fmt::format("fork: {}", std::strerror(error)));
}

Feeding::~Feeding() {
  if (tells_ >= 0) close(tells_);
  wait();
}

void Feeding::end() {
  if (child_ <= 0) return;
  const char over = 0;
  send(tells_, &over, 1, MSG_NOSIGNAL);  // if it was killed, nobody reads it
  wait();
}

void Feeding::wait() {
  if (child_ <= 0) return;
  int status = 0;
  while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
  if (status == 0) return;
  fmt::print(stderr, "tprof: the process that feeds handlers {}\n", live::how_it_ended(status));
}

}  // namespace tprof::cli
