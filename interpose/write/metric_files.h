#pragma once

#include <unistd.h>

#include <cstddef>
#include <string_view>

namespace tprof::metrics {

// Returns a file's text. Empty: it can't be read, or there is more than there is room for, so that
// no sum would be right.
template <std::size_t N>
std::string_view whole_text(int file, char (&room)[N]) {
  std::size_t size = 0;
  for (ssize_t n = 0; size < N; size += static_cast<std::size_t>(n)) {
    n = pread(file, room + size, N - size, static_cast<off_t>(size));
    if (n < 0) return {};
    if (n == 0) return {room, size};
  }
  return {};
}

}  // namespace tprof::metrics
