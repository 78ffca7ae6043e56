#include "live/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "text/print.h"
#include "text/text.h"

namespace tprof::live {

namespace {

// Errors are ignored: the next screen, or the end, will show them.
void put(std::string_view text) {
  text::write_all(STDOUT_FILENO, text);
}

}  // namespace

// Keys such as Ctrl-C are read as keys. The same signals may still come from elsewhere.
Terminal::Terminal() {
  if (tcgetattr(STDIN_FILENO, &before_) == 0) {
    keys_ = STDIN_FILENO;
    termios mine = before_;
    mine.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    mine.c_cc[VMIN] = 0;
    mine.c_cc[VTIME] = 0;
    tcsetattr(keys_, TCSANOW, &mine);
  }
  put("\x1b[?1049h\x1b[?25l");
}

Terminal::~Terminal() {
  put("\x1b[?25h\x1b[?1049l");
  if (keys_ >= 0) tcsetattr(keys_, TCSANOW, &before_);
}

Terminal::Size Terminal::size() {
  winsize w{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_row == 0 || w.ws_col == 0) return {};
  return {w.ws_row, w.ws_col};
}

void Terminal::show(std::string_view text, std::string_view last) {
  const Size now = size();
  std::string out = "\x1b[H";
  for (std::size_t n = 0; n + 1 < now.lines; ++n) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    out.append(line.substr(0, text::fitting(line, now.columns))).append("\x1b[K\r\n");
  }
  out.append("\x1b[7m")
      .append(last.substr(0, text::fitting(last, now.columns)))
      .append("\x1b[m\x1b[K");
  put(out);
}

std::string Terminal::typed() const {
  char bytes[64];
  const ssize_t n = keys_ < 0 ? 0 : ::read(keys_, bytes, sizeof bytes);
  std::string keys(bytes, static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  std::ranges::replace_if(
      keys, [](char c) { return c == '\x03' || c == '\x04'; }, 'q');
  return keys;
}

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
