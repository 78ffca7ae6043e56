#include "live/signals.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace tprof::live {

Signals::Signals() {
  sigset_t held;
  sigemptyset(&held);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH}) sigaddset(&held, signal);
  pthread_sigmask(SIG_BLOCK, &held, &before_);
  fd_ = signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd_ < 0) throw std::runtime_error(std::string("signalfd: ") + std::strerror(errno));
}

Signals::~Signals() {
  close(fd_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Woken Signals::wait(std::chrono::nanoseconds most, int fd) {
  using std::chrono::ceil;
  using std::chrono::milliseconds;
  pollfd from[2] = {{fd_, POLLIN, 0}, {fd, POLLIN, 0}};
  const auto left = std::clamp<std::int64_t>(ceil<milliseconds>(most).count(), 0, 1'000'000'000);
  if (poll(from, 2, static_cast<int>(left)) <= 0) return Woken::time;
  signalfd_siginfo info{};
  if (::read(fd_, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGWINCH) return Woken::resized;
    ended_by_ = static_cast<int>(info.ssi_signo);
    return Woken::end;
  }
  if ((from[1].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
    ended_by_ = SIGHUP;  // the terminal is gone; under nohup the signal is ignored
    return Woken::end;
  }
  return from[1].revents != 0 ? Woken::input : Woken::time;
}

}  // namespace tprof::live
