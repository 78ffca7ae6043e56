// The one way in which the tool speaks. Where its output is closed, full, or a pipe that nobody
// reads, nothing is thrown: what it does, and its exit code, don't depend on who listens.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace tprof::text {

// Puts it on standard output.
void put(std::string_view text);
// Returns why not all of that could be written (errno), or 0.
int unwritten();
// Puts it on standard error, and raises no SIGPIPE.
void put_message(std::string_view text);
// Writes all of it to a descriptor. Returns false, with errno, if that can't be done.
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
