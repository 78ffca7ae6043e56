#include "interpose/base/complain.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>

#include "interpose/base/held_signals.h"
#include "interpose/base/text.h"

namespace tprof {

void say(std::string_view what, std::string_view detail, std::string_view rest) {
  const KeepErrno keep_errno;
  char buffer[513];
  FixedText line(buffer, sizeof buffer - 1);
  line << "tprof: " << what << detail << rest;
  buffer[line.size()] = '\n';
  // A standard error without a reader must not block the thread.
  constexpr int kPatienceMs = 100;
  pollfd readiness{STDERR_FILENO, POLLOUT, 0};
  if (poll(&readiness, 1, kPatienceMs) == 0) return;
  // A closed standard error must not kill the program.
  const WithoutSignal<SIGPIPE> no_signals;
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, buffer, line.size() + 1);
}

void complain(Trouble trouble, std::string_view what, std::string_view detail,
              std::string_view rest) {
  static std::atomic<std::uint32_t> said{0};
  const std::uint32_t bit = 1U << static_cast<unsigned>(trouble);
  // A process that is not traced has nothing more to complain about.
  if (trouble == Trouble::start) said.fetch_or(~bit, std::memory_order_relaxed);
  if ((said.fetch_or(bit, std::memory_order_relaxed) & bit) == 0) say(what, detail, rest);
}

}  // namespace tprof
