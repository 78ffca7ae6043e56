// Checks a running job repeatedly, reports findings, and runs a command for them.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "check/diagnose.h"
#include "check/finding.h"
#include "live/look.h"
#include "live/terminal.h"

namespace tprof::live {

// A finding's process on this machine.
struct Target {
  std::int64_t rank = 0;
  std::int64_t pid = 0;
};

// A finding, and its processes that the command is for.
struct NewFinding {
  const check::Finding* finding;
  std::vector<Target> targets;
};

// True if the process is a descendant of `ancestor`.
bool descends_from(std::int64_t pid, std::int64_t ancestor);

struct Watched {
  std::filesystem::path folder;
  job::Choice choice;
  // The shell runs it once, with one finding per line on standard input (see the contract). If it
  // contains {pid} or {rank}, it runs once for each target, with these replaced and the target's
  // finding. Empty: findings are only reported.
  std::string command;
  std::chrono::nanoseconds stuck_after;
  // Called for each finding before the command runs.
  std::function<void(const check::Finding&)> tell;
  // True if the command is for this finding; empty: for all.
  std::function<bool(const check::Finding&)> wanted{};
  std::function<bool(const Target&)> is_ours{};
};

class Watchdog {
 public:
  Watchdog(Watched watched, const sigset_t& mask) : watched_(std::move(watched)), mask_(mask) {}

  // Returns true if the job is over.
  bool look();
  // Returns the result of the last look; nullopt if there was no job.
  const std::optional<check::Diagnosed>& said() const { return said_; }

  // Looks every `interval`, or less often if that takes long. Returns false if a signal ended it.
  bool look_until_over(Signals& signals, std::chrono::nanoseconds interval);
  // Returns the interval needed to find stuck calls in time.
  std::chrono::nanoseconds often_enough() const;

 private:
  using Clock = std::chrono::steady_clock;

  check::Diagnosed check(bool lines) const;
  bool may_be_stuck();
  void report_new(bool over);
  void tell(check::Kind kind, const std::vector<NewFinding>& findings);
  std::vector<Target> targets_of(const check::Finding& finding) const;

  const Watched watched_;
  const sigset_t mask_;
  Look look_;
  std::optional<check::Diagnosed> said_;
  std::set<check::Kind> told_;
  // The last look's findings of one kind.
  struct Found {
    Clock::time_point since;  // every look since then found one
    std::vector<text::Ranks> ranks;
    std::vector<NewFinding> new_findings;
  };
  std::map<check::Kind, Found> found_;
  struct Progress {
    std::uint64_t calls = 0;
    Clock::time_point since;
  };
  std::map<std::int64_t, Progress> progress_;  // by pid
};

}  // namespace tprof::live
