#include "control/control.h"

#include <fmt/format.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "interpose/base/clock.h"
#include "interpose/format/ring_file.h"
#include "interpose/format/settings.h"
#include "live/look.h"
#include "read/error.h"
#include "read/ring_file.h"
#include "text/text.h"

namespace tprof::control {

namespace fs = std::filesystem;

namespace {

// Throws BadInput if the file is from another version of tprof, or its process is gone.
read::RingFile running(const fs::path& ring) {
  auto file = read::RingFile::open(ring);
  if (!file) throw read::BadInput(ring, "there is no such file: the process has ended");
  if (!file->running()) {
    throw read::BadInput(ring, "the process is gone: tprof recover closes it");
  }
  return std::move(*file);
}

// A command in a ring file.
class Asked {
 public:
  // Throws BadInput like running(), and if another command waits for its answer.
  Asked(const fs::path& path, const Request& request)
      : ring_(running(path)), control_(ring_.lock_control()) {
    const std::uint32_t last =
        control_ == nullptr ? 0 : control_->asked.load(std::memory_order_acquire);
    if (control_ == nullptr || last != control_->answered.load(std::memory_order_acquire)) {
      throw read::BadInput(path, "another tprof ctl waits for the process's answer");
    }
    control_->command = request.command;
    std::memset(control_->argument, 0, sizeof control_->argument);
    request.argument.copy(control_->argument, sizeof control_->argument - 1);
    number_ = last + 1;
    control_->asked.store(number_, std::memory_order_release);
  }

  bool answered() const { return control_->answered.load(std::memory_order_acquire) == number_; }
  Obeyed answer() const { return control_->result; }  // only valid once it has come

 private:
  read::RingFile ring_;
  Control* control_;
  std::uint32_t number_ = 0;
};

constexpr std::chrono::seconds kPatience{2};  // a running process takes a tenth of this
constexpr std::chrono::milliseconds kPause{5};
constexpr std::uint64_t kMost = 1'000'000;  // steps ahead

// Returns a step, counted from 1, that no rank reaches within `lead_ns` from now; 0 if a rank has
// no marked steps.
std::uint64_t step_ahead(const std::vector<Target>& targets, std::uint64_t lead_ns) {
  constexpr std::uint64_t kLongUntold = 500'000'000;
  std::uint64_t last = 0;
  for (const Target& t : targets) {
    const read::RingFile ring = running(t.ring);
    // Its last report (interpose/format/windows.h).
    const StepsBegun& begun = ring.view().head().windows.begun;
    const std::uint64_t count = begun.count.load(std::memory_order_acquire);
    if (count == 0 || begun.marked.load(std::memory_order_relaxed) == 0) return 0;
    const std::uint64_t now = now_ns();
    const std::uint64_t last_ns = begun.last_ns.load(std::memory_order_relaxed);
    const std::uint64_t untold = std::min(now - std::min(now, last_ns), kLongUntold);
    const std::uint64_t took =
        std::max<std::uint64_t>(begun.took_ns.load(std::memory_order_relaxed), 1);
    const std::uint64_t until = count + std::min((untold + lead_ns) / took + 1, kMost);
    last = std::max(last, until);
  }
  return last + 1;
}

void ask_all(std::vector<Target>& targets, const Request& request) {
  std::map<Target*, Asked> all;
  for (Target& t : targets) {
    t.answer.reset();
    t.trouble.clear();
    if (t.ring.empty()) {
      t.trouble = fmt::format(
          "its ring file is not visible from here: it runs on {}, or could not create one", t.host);
      continue;
    }
    try {
      all.try_emplace(&t, t.ring, request);
    } catch (const read::BadInput& e) {
      t.trouble = e.what();
    }
  }
  const auto until = std::chrono::steady_clock::now() + kPatience;
  const auto waits = [](const auto& asked) { return !asked.second.answered(); };
  while (std::ranges::any_of(all, waits) && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kPause);
  }
  for (const auto& [target, asked] : all) {
    if (asked.answered()) target->answer = asked.answer();
  }
}

bool any_late(const std::vector<Target>& targets) {
  return std::ranges::count(targets, Obeyed::late, &Target::answer) != 0;
}

bool all_in_sight(const std::vector<Target>& targets) {
  return std::ranges::none_of(targets, [](const Target& t) { return t.ring.empty(); });
}

// True for a window of several ranks without a fixed first step.
bool may_differ(const Request& request, const std::vector<Target>& targets) {
  return request.command == Command::window && !request.same_step && targets.size() > 1;
}

using Json = nlohmann::ordered_json;

std::string done(const Request& request) {
  switch (request.command) {
    case Command::start:
      return "has event lines from now on";
    case Command::stop:
      return "has no event lines from now on; counting goes on";
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
      return "everything that it did is in its rank file";
    case Command::reset:
      return "counts totals from now on; the trace counts the whole run";
    case Command::timing:
      return request.argument == "host" ? "times no calls on the device from now on"
                                        : "times calls on the device by " + request.argument;
  }
  return "";
}

// A newer library may give an unknown answer.
std::size_t place_of(Obeyed result) {
  return static_cast<std::size_t>(result < Obeyed{kObeyedCount} ? result : Obeyed::unknown);
}

std::string said(const Request& request, Obeyed result) {
  static constexpr std::string_view kSaid[kObeyedCount] = {
      "",
      "did so already",
      "follows its TPROF_SCHEDULE",
      "writes no event lines: TPROF_EVENTS=off, or TPROF_RANKS leaves it out",
      "knows no steps: TPROF_STEP=off",
      "can change between host and events only, once it runs",
      "has CUDA_DEVICE_MAX_CONNECTIONS=1, where timing events would keep communication from "
      "overlapping",
      "could not start the thread for device times",
      "knows no such command",
      "has already begun the first step of its window, so it has no window"};
  return result == Obeyed::done ? done(request) : std::string(kSaid[place_of(result)]);
}

std::string_view result_of(const Target& t) {
  if (!t.trouble.empty()) return "not_asked";
  return t.answer ? kObeyedNames[place_of(*t.answer)] : "silent";
}

std::vector<Target> of_folder(const fs::path& folder, const job::Choice& choice) {
  const live::Look look = live::look_at(folder, choice, read::Wanted::counts);
  if (!look.job) throw read::BadInput(look.why);
  const std::set<const read::Process*> ours(look.job->processes.begin(), look.job->processes.end());
  std::vector<Target> targets;
  for (const read::Trace& trace : look.traces.traces) {
    const read::Process& p = trace.processes.front();
    if (!ours.contains(&p) || p.end != read::End::running || p.forced) continue;
    const read::Header& h = p.header;
    const bool in_sight = h.boot_id == read::boot_id() && !h.ring.empty();
    targets.push_back({h.rank ? fmt::format("rank {}", *h.rank) : fmt::format("process {}", h.pid),
                       h.rank, h.host, h.pid,
                       in_sight ? read::ring_path(trace.source.file, h) : fs::path()});
  }
  if (targets.empty()) throw read::BadInput(folder, "no process of the job runs any more");
  return targets;
}

// Finds the ring file that the process has mapped, through the process's view of the file system.
Target of_pid(std::int64_t pid) {
  const std::string process = fmt::format("/proc/{}", pid);
  std::ifstream maps(process + "/maps");
  if (!maps) {
    throw read::BadInput(process, fmt::format("{}: expected a process that this user may inspect",
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

}  // namespace

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

std::vector<Target> targets_of(const fs::path& where, const job::Choice& choice) {
  const std::string name = where.string();
  std::int64_t pid = 0;
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  const bool number = error == std::errc() && rest == name.data() + name.size() && pid > 0;
  std::vector<Target> targets;
  if (!number || fs::is_directory(where)) return of_folder(where, choice);
  targets.push_back(of_pid(pid));
  return targets;
}

Request ask(std::vector<Target>& targets, const Request& request) {
  constexpr std::uint64_t kLeads[] = {1'000'000'000, 3'000'000'000, 10'000'000'000};
  Request same = request;
  same.same_step = true;
  if (may_differ(request, targets) && all_in_sight(targets)) {
    for (const std::uint64_t lead_ns : kLeads) {
      const std::uint64_t first = step_ahead(targets, lead_ns);
      if (first == 0) break;
      same.argument = fmt::format("{}@{}", request.argument, first);
      ask_all(targets, same);
      if (!any_late(targets)) return same;
    }
    if (any_late(targets)) return same;
  }
  ask_all(targets, request);
  return request;
}

bool is_well(const Target& t) {
  return t.answer && *t.answer <= Obeyed::already;
}

std::string to_text(const Request& request, const std::vector<Target>& targets) {
  std::string all;
  for (const Target& t : targets) {
    const std::string what = !t.trouble.empty() ? t.trouble
                             : t.answer         ? said(request, *t.answer)
                                                : fmt::format(
                                                      "gave no answer in {} s: it is stopped, or its "
                                                              "machine is busy; it will obey when it goes on",
                                                      kPatience.count());
    all += fmt::format("{}{}: {}\n", t.name, t.rank ? fmt::format(", pid {}", t.pid) : "",
                       text::printable(what));
  }
  if (!may_differ(request, targets)) return all;
  return all + (all_in_sight(targets)
                    ? "These steps may differ between ranks, as the program marks none\n"
                    : "These steps may differ between ranks, as some ranks are not visible from "
                      "here: name the first step on each machine, as in window 3@120\n");
}

std::string to_json(const Request& request, const std::vector<Target>& targets) {
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
  return j.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace tprof::control
