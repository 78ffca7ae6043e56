#include "live/shell.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace tprof::live {

// Starts the command with `input` as standard input and the signal mask `mask`. Throws
// std::runtime_error.
static children::Child start_in_shell(const std::string& command, int input, const sigset_t& mask,
                                      Group group) {
  children::Child child([&] {
    if (group == Group::own) setpgid(0, 0);
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    dup2(input, STDIN_FILENO);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    return 127;
  });
  if (child.pid() < 0) throw std::runtime_error(fmt::format("fork: {}", std::strerror(errno)));
  // Done in both processes, so that the group exists before anybody kills it.
  if (group == Group::own) setpgid(child.pid(), child.pid());
  return child;
}

int run_in_shell(const std::string& command, int input, const sigset_t& mask, Group group) {
  return start_in_shell(command, input, mask, group).wait();
}

std::string how_it_ended(int wait_status) {
  if (WIFEXITED(wait_status)) return fmt::format("exited with {}", WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  return fmt::format("was ended by signal {} ({})", signal, strsignal(signal));
}

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Rounds up, for poll().
int milliseconds_in(nanoseconds time) {
  const auto ms = std::chrono::ceil<milliseconds>(time).count();
  return static_cast<int>(std::clamp<std::int64_t>(ms, 0, 1'000'000'000));
}

std::string how(int wait_status) {
  constexpr int kNotFound = 127;  // a shell's
  const bool not_found = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == kNotFound;
  return how_it_ended(wait_status) + (not_found ? ": there is no such command" : "");
}

}  // namespace

bool at_end(int told, nanoseconds most) {
  pollfd end{told, POLLIN, 0};
  return poll(&end, 1, milliseconds_in(most)) > 0;
}

Handler::Handler(std::string command, nanoseconds wait, int told, const sigset_t& mask)
    : command_(std::move(command)), wait_(wait), told_(told) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw std::runtime_error(fmt::format("pipe: {}", std::strerror(errno)));
  }
  to_ = ends[1];
  fcntl(to_, F_SETFL, O_NONBLOCK);
  shell_ = start_in_shell(command_, ends[0], mask, Group::own);
  close(ends[0]);
}

Handler::~Handler() {
  if (to_ >= 0) close(to_);
}

std::optional<nanoseconds> Handler::time_left() {
  if (!over_ && at_end(told_, nanoseconds(0))) over_ = Clock::now();
  if (!over_) return std::nullopt;
  return std::max(*over_ + wait_ - Clock::now(), nanoseconds(0));
}

bool Handler::give(std::string_view lines) {
  while (!lines.empty()) {
    const ssize_t n = write(to_, lines.data(), lines.size());
    if (n >= 0) {
      lines.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      const auto left = time_left();
      if (left == nanoseconds(0)) return false;
      pollfd from[] = {{to_, POLLOUT, 0}, {left ? -1 : told_, POLLIN, 0}};
      poll(from, 2, left ? milliseconds_in(*left) : -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

// SIGCHLD wakes us up if it is blocked; else we poll ten times a second.
bool Handler::ends_in_time(nanoseconds more) {
  constexpr timespec kBetweenLooks{0, 100'000'000};
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  while (!(status_ = shell_.ended())) {
    if (time_left() && Clock::now() >= *over_ + wait_ + more) return false;
    sigtimedwait(&child, nullptr, &kBetweenLooks);
  }
  return true;
}

std::string Handler::end() {
  close(to_);
  to_ = -1;
  if (ends_in_time(nanoseconds(0))) return *status_ == 0 ? "" : how(*status_);
  constexpr std::chrono::seconds kBehindSigterm{2};
  const char* by = "SIGTERM";
  const pid_t group = shell_.pid();
  kill(-group, SIGTERM);
  if (!ends_in_time(kBehindSigterm)) {
    by = "SIGKILL";
    kill(-group, SIGKILL);
    ends_in_time(kBehindSigterm + std::chrono::seconds(10));  // it will
  }
  return fmt::format("it did not end with the job, and was killed by {}", by);
}

}  // namespace tprof::live
