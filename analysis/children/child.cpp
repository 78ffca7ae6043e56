#include "children/child.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <utility>

namespace tprof::children {

Child::Child(const std::function<int()>& work, Orphan orphan) {
  std::fflush(nullptr);  // else the child would write buffered output again
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ != 0) return;
  if (orphan == Orphan::dies) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
  }
  const int code = work();
  std::fflush(nullptr);
  _exit(code);
}

Child::Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  return *this;
}

int Child::wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  return status;
}

std::optional<int> Child::ended() {
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = 0;
  return status;
}

void Child::kill(int signal) const {
  if (pid_ > 0) ::kill(pid_, signal);
}

void Child::stop() {
  if (pid_ <= 0) return;
  kill(SIGKILL);
  wait();
}

}  // namespace tprof::children
