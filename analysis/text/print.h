// All output of the tool goes through here. If output is closed, full, or a pipe without a reader,
// nothing is thrown: the tool's work and exit code don't depend on its reader.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace tprof::text {

// Writes to standard output.
void put(std::string_view text);
// Returns the errno of the first failed write, or 0.
int unwritten();
// Writes to standard error without SIGPIPE.
void put_message(std::string_view text);
// Writes everything to a descriptor. Returns false, with errno, on failure.
bool write_all(int fd, std::string_view text);

template <typename... A>
void print(fmt::format_string<A...> format, A&&... a) {
  put(fmt::format(format, std::forward<A>(a)...));
}
template <typename... A>
void say(fmt::format_string<A...> format, A&&... a) {
  put_message(fmt::format(format, std::forward<A>(a)...));
}

}  // namespace tprof::text
