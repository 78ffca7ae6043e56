#include "text/print.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "interpose/base/held_signals.h"

namespace tprof::text {
namespace {

int g_error = 0;  // the first one of standard output

}  // namespace

void put(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written && g_error == 0) g_error = errno;
}

int unwritten() {
  if (std::fflush(stdout) != 0 && g_error == 0) g_error = errno;
  return g_error;
}

void put_message(std::string_view text) {
  const WithoutSignal<SIGPIPE> no_signals;
  write_all(STDERR_FILENO, text);
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace tprof::text
