#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "cli/commands.h"
#include "cli/look.h"
#include "interpose/format/settings.h"
#include "live/asked.h"
#include "read/error.h"
#include "read/ring_file.h"
#include "text/text.h"

namespace tprof::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kPatience{2};  // ten times what a running process takes
constexpr std::chrono::milliseconds kPause{5};
constexpr std::uint64_t kMost = 1'000'000;  // steps ahead

// A process that is asked, and the outcome.
struct Target {
  std::string name;  // "rank 3"
  std::optional<std::int64_t> rank;
  std::string host;
  std::int64_t pid = 0;
  fs::path ring;  // empty: none is in sight
  std::unique_ptr<live::Asked> asked{};
  std::string trouble{};  // why it could not be asked
};

struct Request {
  Command command;
  std::string argument;
  bool same_step = false;  // `argument` says with which step of all ranks a window begins
};

// Throws BadInput if that is no command.
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

std::vector<Target> of_folder(const Options& o) {
  const Look look = look_at(o.folder, o.choice, read::Wanted::counts);
  if (!look.job) throw read::BadInput(look.why);
  const std::set<const read::Process*> ours(look.job->processes.begin(), look.job->processes.end());
  std::vector<Target> targets;
  for (const read::Trace& trace : look.traces.traces) {
    const read::Process& p = trace.processes.front();
    if (!ours.contains(&p) || p.end != read::End::running) continue;
    const read::Header& h = p.header;
    const bool in_sight = h.boot_id == read::boot_id() && !h.ring.empty();
    targets.push_back({h.rank ? fmt::format("rank {}", *h.rank) : fmt::format("process {}", h.pid),
                       h.rank, h.host, h.pid,
                       in_sight ? read::ring_path(trace.source.file, h) : fs::path()});
  }
  if (targets.empty()) throw read::BadInput(o.folder, "no process of the job runs any more");
  return targets;
}

// Finds the ring file that the process has mapped, by the process's own view of the file system.
Target of_pid(std::int64_t pid) {
  const std::string process = fmt::format("/proc/{}", pid);
  std::ifstream maps(process + "/maps");
  if (!maps) {
    throw read::BadInput(process, fmt::format("{}: expected a process that this user may look at",
                                              std::strerror(errno)));
  }
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find('/');
    if (path == std::string::npos || !line.ends_with(".ring")) continue;
    const std::string ring = line.substr(path);
    if (!fs::path(ring).filename().string().starts_with('.')) continue;
    return {fmt::format("process {}", pid), std::nullopt, "", pid, process + "/root" + ring};
  }
  throw read::BadInput(process, "has no ring file mapped: it is not traced, or has ended tracing");
}

std::vector<Target> targets_of(const Options& o) {
  const std::string name = o.folder.string();
  std::int64_t pid = 0;
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  const bool number = error == std::errc() && rest == name.data() + name.size() && pid > 0;
  std::vector<Target> targets;
  if (!number || fs::is_directory(o.folder)) return of_folder(o);
  targets.push_back(of_pid(pid));
  return targets;
}

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// Returns a step, counted from 1, that no rank reaches within `lead_ns` from now. Returns 0 if a
// rank has no steps that the program marks.
std::uint64_t step_ahead(const std::vector<Target>& targets, std::uint64_t lead_ns) {
  constexpr std::uint64_t kLongUntold = 500'000'000;
  std::uint64_t last = 0;
  for (const Target& t : targets) {
    const live::StepsSeen seen = live::steps_seen(t.ring);
    if (seen.count == 0) return 0;
    const std::uint64_t now = monotonic_ns();
    const std::uint64_t untold = std::min(now - std::min(now, seen.last_ns), kLongUntold);
    const std::uint64_t took = std::max<std::uint64_t>(seen.took_ns, 1);
    const std::uint64_t until = seen.count + std::min((untold + lead_ns) / took + 1, kMost);
    last = std::max(last, until);
  }
  return last + 1;
}

bool all_in_sight(const std::vector<Target>& targets) {
  return std::ranges::none_of(targets, [](const Target& t) { return t.ring.empty(); });
}

void ask(Target& t, const Request& request) {
  if (t.ring.empty()) {
    t.trouble =
        fmt::format("its ring file is not in sight: it runs on {}, or could make none", t.host);
    return;
  }
  try {
    t.asked = std::make_unique<live::Asked>(t.ring, request.command, request.argument);
  } catch (const read::BadInput& e) {
    t.trouble = e.what();
  }
}

void wait_for(const std::vector<Target>& targets) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  const auto waits = [](const Target& t) { return t.asked && !t.asked->answered(); };
  while (std::ranges::any_of(targets, waits) && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kPause);
  }
}

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

bool any_late(const std::vector<Target>& targets) {
  return std::ranges::any_of(targets, [](const Target& t) {
    return t.asked && t.asked->answered() && t.asked->answer() == Obeyed::late;
  });
}

void ask_all(std::vector<Target>& targets, const Request& request) {
  for (Target& t : targets) {
    t.asked.reset();
    ask(t, request);
  }
  wait_for(targets);
}

// Makes all ranks of a job begin the window with the same step. That step is ahead of all ranks. If
// a rank had begun it before it heard, the next try is further ahead. Only the program's own marks
// say which steps of two ranks are the same.
Request ask_for_window(std::vector<Target>& targets, const Request& request) {
  constexpr std::uint64_t kLeads[] = {1'000'000'000, 3'000'000'000, 10'000'000'000};
  Request same = request;
  same.same_step = true;
  for (const std::uint64_t lead_ns : kLeads) {
    const std::uint64_t first = step_ahead(targets, lead_ns);
    if (first == 0) break;
    same.argument = fmt::format("{}@{}", request.argument, first);
    ask_all(targets, same);
    if (!any_late(targets)) return same;
  }
  if (any_late(targets)) return same;
  ask_all(targets, request);
  return request;
}

}  // namespace

int ctl(const Options& o) {
  Request request = request_of(o.command, o.argument);
  std::vector<Target> targets = targets_of(o);
  const bool together = request.command == Command::window && !request.same_step &&
                        targets.size() > 1 && all_in_sight(targets);
  if (together) {
    request = ask_for_window(targets, request);
  } else {
    ask_all(targets, request);
  }
  const bool apart = request.command == Command::window && !request.same_step && targets.size() > 1;
  if (o.json) {
    fmt::print("{}\n", json_of(request, targets));
  } else {
    for (const Target& t : targets) fmt::print("{}\n", line_of(request, t));
    if (apart) {
      fmt::print("{}\n",
                 together
                     ? "Which steps these are may differ between ranks: the program marks none"
                     : "Which steps these are may differ between ranks, as not all are in sight: "
                       "say which one to begin with on each machine, as in window 3@120");
    }
  }
  return std::ranges::all_of(targets, is_well) ? kOk : kFinding;
}

}  // namespace tprof::cli
