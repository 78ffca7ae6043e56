#include "cli/feeding.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <set>
#include <stdexcept>

#include "launch/feed.h"
#include "live/on_finding.h"
#include "live/shell.h"
#include "read/ring_file.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::cli {
namespace {

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

Feeding::Feeding(const Options& o, const fs::path& folder, const std::string& run_id,
                 const launch::Launch& launch) {
  const bool windows = !o.on_window.empty() || o.keep_windows >= 0;
  if (o.handlers.empty() && !windows) return;
  const fs::path whole = fs::absolute(folder);  // handlers are told absolute paths
  const launch::RunFiles run{whole, files_of(whole, run_id, launch)};
  for (const std::string& command : o.handlers) {
    start(handlers_, [&](int told, const sigset_t& mask) {
      launch::feed_handler(run, command, seconds(o.handler_wait_s), told, mask);
    });
  }
  if (!windows) return;
  const auto keep =
      o.keep_windows < 0 ? std::nullopt : std::optional<std::uint64_t>(o.keep_windows);
  start(windows_, [&](int told, const sigset_t& mask) {
    launch::feed_window_commands(run, o.on_window, keep, o.quiet, told, mask);
  });
}

Feeding::~Feeding() {
  end();
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

}  // namespace tprof::cli
