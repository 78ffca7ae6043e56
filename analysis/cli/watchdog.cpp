#include "cli/watchdog.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/text.h"

namespace tprof::cli {
namespace {

// What a job that has just begun, or is about to end, does not look like for a moment. Of other
// kinds it may: ranks that are not there yet, files that are not whole.
bool is_certain(const diagnose::Finding& f) {
  return f.kind == "hang" || f.kind == "mismatch";
}

}  // namespace

diagnose::Diagnosed Watchdog::check(bool lines) const {
  return diagnose::diagnose(*look_.job, look_.traces,
                            {.read_lines = lines, .stuck_after_ns = watched_.stuck_after.count()});
}

// All lines are read only where there is a reason: nothing is stuck that calls on, and that has no
// call which stands.
bool Watchdog::may_be_stuck() {
  const auto now = Clock::now();
  bool may = false;
  std::map<std::int64_t, Progress> progress;
  for (const live::Rank& rank : live::ranks_of(look_.traces, look_.job->processes)) {
    if (rank.process->end != read::End::running) continue;
    const std::int64_t pid = rank.process->header.pid;
    const auto before = progress_.find(pid);
    const bool still = before != progress_.end() && before->second.calls == rank.all.calls;
    const Progress mine = {rank.all.calls, still ? before->second.since : now};
    progress.emplace(pid, mine);
    may = may || now - mine.since >= watched_.stuck_after ||
          (!rank.open.empty() && rank.open[0].age_ns >= watched_.stuck_after.count());
  }
  progress_ = std::move(progress);
  return may;
}

bool Watchdog::look() {
  said_.reset();  // it is of the traces that go now
  look_ = look_at(watched_.folder, watched_.choice, read::Wanted::counts);
  if (!look_.job) return false;
  said_ = check(false);
  const bool worse = !diagnose::healthy(said_->findings);
  if (may_be_stuck() || worse || look_.over()) {
    said_.reset();
    look_ = look_at(watched_.folder, watched_.choice, read::Wanted::lines);
    if (!look_.job) return false;
    said_ = check(true);
  }
  const bool over = look_.over();
  tell_new(over);
  return over;
}

bool Watchdog::look_until_over(live::Signals& signals, std::chrono::nanoseconds interval) {
  constexpr int kShare = 20;  // of the time at most one part in so many is spent looking
  for (;;) {
    const auto begun = Clock::now();
    if (look()) return true;
    const std::chrono::nanoseconds took = Clock::now() - begun;
    if (signals.wait(std::max(interval, kShare * took)) == live::Woken::end) return false;
  }
}

std::chrono::nanoseconds Watchdog::often_enough() const {
  using std::chrono::nanoseconds;
  return std::clamp<nanoseconds>(watched_.stuck_after / 4, std::chrono::milliseconds(100),
                                 std::chrono::seconds(5));
}

void Watchdog::tell_new(bool over) {
  const auto now = Clock::now();
  std::map<std::string, Clock::time_point> since;
  std::map<std::string, std::vector<live::ToTell>> found;  // by kind
  for (const diagnose::Finding& f : said_->findings) {
    if (f.severity == diagnose::Severity::note) continue;
    const auto before = since_.find(f.kind);
    const auto first = before == since_.end() ? now : before->second;
    since.emplace(f.kind, first);
    const bool stays = is_certain(f) || over || now - first >= watched_.stuck_after;
    const bool wanted = !watched_.wanted || watched_.wanted(f);
    if (stays && wanted && !told_.contains(f.kind)) found[f.kind].push_back({&f, targets_of(f)});
  }
  since_ = std::move(since);
  for (const auto& [kind, findings] : found) tell(kind, findings);
}

std::vector<live::Target> Watchdog::targets_of(const diagnose::Finding& f) const {
  std::vector<live::Target> targets = live::targets_of(f, *look_.job);
  if (watched_.is_ours) {
    std::erase_if(targets, [&](const live::Target& t) { return !watched_.is_ours(t); });
  }
  return targets;
}

void Watchdog::tell(const std::string& kind, const std::vector<live::ToTell>& findings) {
  const bool nobodys =
      std::ranges::all_of(findings, [](const live::ToTell& f) { return f.targets.empty(); });
  if (watched_.is_ours && nobodys) return;
  told_.insert(kind);
  for (const live::ToTell& f : findings) watched_.tell(*f.finding);
  if (!live::run_for(watched_.command, findings, mask_)) {
    fmt::print(stderr, "tprof: no process of it runs here, so this was not run: {}\n",
               text::printable(watched_.command));
  }
}

}  // namespace tprof::cli
