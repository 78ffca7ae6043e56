// Looks at a running job again and again, tells what it finds, and runs a command for it.
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

// A process of a finding that runs on this machine.
struct Target {
  std::int64_t rank = 0;
  std::int64_t pid = 0;
};

// A finding, and those of its processes that the command is for.
struct ToTell {
  const check::Finding* finding;
  std::vector<Target> targets;
};

// True if the process was started by that one, or by a child of it, and so on.
bool descends_from(std::int64_t pid, std::int64_t ancestor);

struct Watched {
  std::filesystem::path folder;
  job::Choice choice;
  // The shell runs it once, with the findings on its standard input, one a line (see the contract).
  // If it has {pid} or {rank} in it, it runs once for each target, with these replaced and the
  // target's finding. Empty: findings are only told.
  std::string command;
  std::chrono::nanoseconds stuck_after;
  // Called for each finding before the command is run for it.
  std::function<void(const check::Finding&)> tell;
  // True if the command is for this finding. Empty: it is for all.
  std::function<bool(const check::Finding&)> wanted{};
  std::function<bool(const Target&)> is_ours{};
};

class Watchdog {
 public:
  Watchdog(Watched watched, const sigset_t& mask) : watched_(std::move(watched)), mask_(mask) {}

  // Returns true if the job is over.
  bool look();
  // Returns what the last look found; nullopt if there was no job.
  const std::optional<check::Diagnosed>& said() const { return said_; }

  // Looks every `interval`, or less often if looking takes long. Returns false if a signal ended
  // it.
  bool look_until_over(Signals& signals, std::chrono::nanoseconds interval);
  // Returns the interval that is needed to find stuck calls in time.
  std::chrono::nanoseconds often_enough() const;

 private:
  using Clock = std::chrono::steady_clock;

  check::Diagnosed check(bool lines) const;
  bool may_be_stuck();
  void tell_new(bool over);
  void tell(check::Kind kind, const std::vector<ToTell>& findings);
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
    std::vector<ToTell> to_tell;
  };
  std::map<check::Kind, Found> found_;
  struct Progress {
    std::uint64_t calls = 0;
    Clock::time_point since;
  };
  std::map<std::int64_t, Progress> progress_;  // by pid
};

}  // namespace tprof::live
