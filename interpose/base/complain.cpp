#include "interpose/base/complain.h"

#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "interpose/base/held_signals.h"

namespace tprof {

void say(std::string_view what, std::string_view detail, std::string_view rest) {
  const NoCancel no_cancel;
  const int saved = errno;
  char line[512];
  std::size_t size = 0;
  for (std::string_view part : {std::string_view("tprof: "), what, detail, rest}) {
    const std::size_t n = std::min(part.size(), sizeof line - 1 - size);
    std::memcpy(line + size, part.data(), n);
    size += n;
  }
  line[size++] = '\n';
  // A closed standard error must not kill the program: hold SIGPIPE back and take ours away.
  sigset_t pipe_only;
  sigset_t before;
  sigset_t pending;
  sigemptyset(&pipe_only);
  sigaddset(&pipe_only, SIGPIPE);
  sigpending(&pending);
  const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
  if (sigprocmask(SIG_BLOCK, &pipe_only, &before) == 0) {
    if (write(STDERR_FILENO, line, size) < 0 && errno == EPIPE && !was_pending) {
      const timespec now{};
      sigtimedwait(&pipe_only, nullptr, &now);
    }
    sigprocmask(SIG_SETMASK, &before, nullptr);
  }
  errno = saved;
}

void complain(Trouble trouble, std::string_view what, std::string_view detail,
              std::string_view rest) {
  static std::atomic<std::uint32_t> said{0};
  const std::uint32_t bit = 1U << static_cast<unsigned>(trouble);
  if ((said.fetch_or(bit, std::memory_order_relaxed) & bit) == 0) say(what, detail, rest);
}

}  // namespace tprof
