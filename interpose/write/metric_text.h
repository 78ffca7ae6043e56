// Reads and parses files of /proc. Missing numbers stay kNotRead.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpose/base/text.h"
#include "interpose/format/metrics.h"

namespace tprof::metrics {

// Returns a file's text. Empty: it can't be read, or is too long, so that sums would be wrong.
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

// Removes and returns the text before the first `end`.
inline std::string_view take_until(std::string_view& text, char end) {
  const std::string_view taken = prefix(text, text.find(end));
  text = without_prefix(text, taken.size() + 1);
  return taken;
}

inline std::string_view take_word(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  return take_until(text, ' ');
}

// Takes the next number of a line. kNotRead: there is none.
inline std::uint64_t take_number(std::string_view& text) {
  const std::string_view word = take_word(text);
  std::uint64_t n = 0;
  return parse_number(word, n) ? n : kNotRead;
}

// Finds the number of `key` in lines such as "VmRSS: 1728 kB". `unit`: its unit in bytes.
inline std::uint64_t number_of(std::string_view text, std::string_view key,
                               std::uint64_t unit = 1) {
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (take_until(line, ':') != key) continue;
    if (line.starts_with('\t')) line.remove_prefix(1);
    const std::uint64_t n = take_number(line);
    return n > kNotRead / unit ? kNotRead : n * unit;
  }
  return kNotRead;
}

// /proc/self/status and /proc/self/io.
inline void parse_status(std::string_view text, ProcessMetrics& to) {
  to.resident = number_of(text, "VmRSS", 1024);
  to.file = number_of(text, "RssFile", 1024);
  to.threads = number_of(text, "Threads");
}
inline void parse_io(std::string_view text, ProcessMetrics& to) {
  to.read_bytes = number_of(text, "read_bytes");
  to.written_bytes = number_of(text, "write_bytes");
}

}  // namespace tprof::metrics
