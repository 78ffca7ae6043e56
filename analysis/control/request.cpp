#include "control/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "interpose/format/settings.h"
#include "read/error.h"

namespace tprof::control {

Request request_of(const std::string& word, const std::string& argument) {
  const auto name = std::ranges::find(kCommandNames, word);
  if (name == std::end(kCommandNames)) {
    throw read::BadInput(
        fmt::format("expected start, stop, window N, dump, reset or timing MODE, found {}", word));
  }
  const auto command = static_cast<Command>(name - std::begin(kCommandNames));
  const bool wants_one = command == Command::window || command == Command::timing;
  if (argument.empty() == wants_one) {
    throw read::BadInput(
        fmt::format("{} takes {}", word, wants_one ? "one argument" : "no argument"));
  }
  std::uint32_t steps = 0;
  std::uint64_t from = 0;
  if (command == Command::window && !parse_window(argument, steps, from)) {
    throw read::BadInput(
        "window takes a number of steps from 1, or N@STEP with the step it begins with, found " +
        argument);
  }
  if (command == Command::timing && !info(Setting::timing).accepts(argument)) {
    throw read::BadInput("timing takes host, events or events:N, found " + argument);
  }
  return {command, argument, from != 0};
}

}  // namespace tprof::control
