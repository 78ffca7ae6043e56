// Compares two runs, and the settings and all else that they were started with.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <set>
#include <utility>

#include "check/started.h"
#include "diff/compare.h"

namespace tprof::diff {
namespace {

using About = Setting::About;
using Values = std::map<std::pair<About, std::string>, std::set<std::string>>;

// All values that the processes have.
Values values_of(const Run& run) {
  Values all;
  const auto add = [&](About about, const char* what, const std::string& value) {
    if (!value.empty()) all[{about, what}].insert(value);
  };
  for (const diagnose::Started& s : diagnose::started_with(run.job->processes)) {
    using From = diagnose::Started::About;
    const bool variable = s.about == From::config || s.about == From::env;
    const bool the_runs_own = s.name == "TPROF_OUTPUT_DIR" || s.name == "TPROF_RUN_ID";
    if (the_runs_own) continue;
    for (const auto& [value, processes] : s.values) {
      add(variable ? About::setting : About::version, s.name.c_str(), value);
    }
  }
  for (const read::Process* p : run.job->processes) {
    add(About::setting, "command", p->header.command);
    add(About::host, "hosts", p->header.host);
  }
  const auto hosts = all[{About::host, "hosts"}].size();
  add(About::size, "number of hosts", std::to_string(hosts));
  add(About::size, "ranks", std::to_string(run.ranks));
  if (run.steps_seen != 0) add(About::size, "steps", std::to_string(run.steps_seen));
  return all;
}

std::string joined(const std::set<std::string>& values) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> some(values.begin(), values.end());
  if (some.size() <= kMost) return fmt::format("{}", fmt::join(some, ", "));
  some.resize(kMost);
  return fmt::format("{} and {} more", fmt::join(some, ", "), values.size() - kMost);
}

void compare_settings(const Run& a, const Run& b, Diff& to) {
  Values of_a = values_of(a);
  Values of_b = values_of(b);
  for (const auto& [key, values] : of_a) of_b[key];
  for (const auto& [key, values] : of_b) {
    if (of_a[key] == values) continue;
    to.settings.push_back({key.first, key.second, joined(of_a[key]), joined(values)});
  }
}

}  // namespace

Diff compare(const Run& a, const Run& b) {
  std::error_code none;
  Diff d;
  d.same_traces = std::filesystem::equivalent(a.path, b.path, none);
  for (const auto& [run, name] : {std::pair(&a, "A"), std::pair(&b, "B")}) {
    if (!run->job->beside.empty()) {
      d.notes.push_back(fmt::format("{}: {}", name, run->job->beside));
    }
    for (const read::Skipped& s : run->unreadable) {
      d.notes.push_back(fmt::format("{}: {}", name, s.reason));
    }
    if (run->ended) continue;
    d.notes.push_back(fmt::format("{} did not end, or is not all here: see tprof check", name));
  }
  compare_counts(a, b, d);
  compare_times(a, b, d);
  compare_slow_ranks(a, b, d);
  compare_settings(a, b, d);
  return d;
}

}  // namespace tprof::diff
