#include "launch/command.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "children/child.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::launch {
namespace {

constexpr std::array kPassedOn = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT};

// The shell's exit codes (POSIX, 2.8.2): not found, found but not executable.
constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;

}  // namespace

// Signals are blocked and fetched one by one: nothing is lost and no handler runs.
int run_child(const std::vector<std::string>& command, const doctor::Settings& settings) {
  sigset_t awaited;
  sigset_t before;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  for (const int signal : kPassedOn) sigaddset(&awaited, signal);
  std::signal(SIGCHLD, SIG_DFL);  // if ignored, it would take the wait status from us
  sigprocmask(SIG_BLOCK, &awaited, &before);

  children::Child child([&] {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    doctor::become(command, settings);
    const int error = errno;
    text::say("tprof: {}: {}\n", text::printable(command[0]), std::strerror(error));
    return error == ENOENT ? kNotFound : kNotExecutable;
  });
  if (child.pid() < 0) throw std::runtime_error(fmt::format("fork: {}", std::strerror(errno)));
  std::optional<int> status;
  while (!(status = child.ended())) {
    siginfo_t info{};
    const int signal = sigwaitinfo(&awaited, &info);
    if (signal < 0 || signal == SIGCHLD) continue;
    // A signal from the terminal (Ctrl-C) goes to the whole process group: the command has it
    // already.
    if (info.si_code != SI_KERNEL) child.kill(signal);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return *status;
}

void let_writes_fail() {
  std::signal(SIGXFSZ, SIG_IGN);
}

void exit_like(int wait_status) {
  std::fflush(nullptr);
  if (!WIFSIGNALED(wait_status)) _exit(WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  // The command's core dump is the one that matters: ours would overwrite it.
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  std::signal(signal, SIG_DFL);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  raise(signal);
  _exit(128 + signal);
}

}  // namespace tprof::launch
