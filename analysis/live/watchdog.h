// Looks at a running job again and again, tells what it finds, and runs a command for it.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "check/diagnose.h"
#include "live/look.h"
#include "live/on_finding.h"
#include "live/signals.h"

namespace tprof::live {

struct Watched {
  std::filesystem::path folder;
  job::Choice choice;
  std::string command;  // empty: findings are only told
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
