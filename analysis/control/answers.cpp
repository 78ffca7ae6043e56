#include "control/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "control/ask.h"
#include "text/text.h"

namespace tprof::control {
namespace {

using Json = nlohmann::ordered_json;

std::string done(const Request& request) {
  switch (request.command) {
    case Command::start:
      return "has event lines from now on";
    case Command::stop:
      return "has no event lines from now on; it counts on";
    case Command::window: {
      const std::size_t at = request.argument.find('@');
      if (!request.same_step) {
        return fmt::format("has event lines in its next {} whole steps, and none after them",
                           request.argument);
      }
      return fmt::format(
          "has event lines in {} steps from its step number {} on, and none after them",
          request.argument.substr(0, at), request.argument.substr(at + 1));
    }
    case Command::dump:
      return "all that it did is in its rank file";
    case Command::reset:
      return "counts its totals from here; the trace counts the whole run";
    case Command::timing:
      return request.argument == "host" ? "times no calls on the device from now on"
                                        : "times calls on the device by " + request.argument;
  }
  return "";
}

std::string said(const Request& request, Obeyed result) {
  switch (result) {
    case Obeyed::done:
      return done(request);
    case Obeyed::already:
      return "did so already";
    case Obeyed::schedule:
      return "goes by its TPROF_SCHEDULE";
    case Obeyed::no_lines:
      return "writes no event lines: TPROF_EVENTS=off, or TPROF_RANKS leaves it out";
    case Obeyed::no_steps:
      return "knows no steps: TPROF_STEP=off";
    case Obeyed::no_timer:
      return "can change between host and events only, once it runs";
    case Obeyed::ordered:
      return "has CUDA_DEVICE_MAX_CONNECTIONS=1, where timing events would keep communication "
             "from overlapping";
    case Obeyed::failed:
      return "could not start the thread that times";
    case Obeyed::late:
      return "had begun the step that its window was to begin with, and has none";
    case Obeyed::unknown:
      break;
  }
  return "knows no such command";
}

constexpr std::string_view kSilent = "silent";
constexpr std::string_view kNotAsked = "not_asked";

std::string_view result_of(const Target& t) {
  if (!t.asked) return kNotAsked;
  if (!t.asked->answered()) return kSilent;
  const auto result = static_cast<std::size_t>(t.asked->answer());
  return kObeyedNames[std::min(result, kObeyedCount - 1)];
}

}  // namespace

bool is_well(const Target& t) {
  return t.asked && t.asked->answered() && t.asked->answer() <= Obeyed::already;
}

std::string line_of(const Request& request, const Target& t) {
  const std::string what = !t.asked ? t.trouble
                           : t.asked->answered()
                               ? said(request, t.asked->answer())
                               : fmt::format(
                                     "gave no answer in {} s: it is stopped, or its machine "
                                     "is busy; it obeys when it goes on",
                                     kPatience.count());
  return fmt::format("{}{}: {}", t.name, t.rank ? fmt::format(", pid {}", t.pid) : "",
                     text::printable(what));
}

std::string json_of(const Request& request, const std::vector<Target>& targets) {
  Json processes = Json::array();
  for (const Target& t : targets) {
    processes.push_back({{"rank", t.rank ? Json(*t.rank) : Json()},
                         {"pid", t.pid},
                         {"result", result_of(t)},
                         {"trouble", t.trouble.empty() ? Json() : Json(t.trouble)}});
  }
  const Json j = {{"schema", "tprof-ctl/1"},
                  {"command", kCommandNames[static_cast<std::size_t>(request.command)]},
                  {"argument", request.argument.empty() ? Json() : Json(request.argument)},
                  {"processes", std::move(processes)}};
  return j.dump(1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace tprof::control
