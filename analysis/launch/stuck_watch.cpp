#include "launch/stuck_watch.h"

#include <unistd.h>

#include <cstdio>

#include "live/on_finding.h"
#include "live/signals.h"
#include "live/watchdog.h"
#include "report/findings.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::launch {
namespace {

// Watches until it is killed, since its job may be over and another one begin.
void watch(const std::string& command, std::chrono::nanoseconds stuck_after,
           const std::filesystem::path& folder, const std::string& run_id, pid_t ours) try {
  live::Signals signals;
  live::Watchdog dog(
      {.folder = folder,
       .choice = {run_id, 0},
       .command = command,
       .stuck_after = stuck_after,
       .tell =
           [](const check::Finding& f) {
             text::say("{}", report::to_text(f, report::Detail::full));
           },
       .wanted =
           [](const check::Finding& f) {
             return f.kind == check::Kind::hang || f.kind == check::Kind::group_order;
           },
       .is_ours = [ours](const live::Target& t) { return live::descends_from(t.pid, ours); }},
      signals.before());
  while (dog.look_until_over(signals, dog.often_enough()) &&
         signals.wait(dog.often_enough()) != live::Woken::end) {
  }
} catch (const std::exception& e) {
  text::say("tprof: --on-stuck: {}\n", text::printable(e.what()));
}

}  // namespace

StuckWatch::StuckWatch(const std::string& command, std::chrono::nanoseconds stuck_after,
                       const std::filesystem::path& folder, const std::string& run_id) {
  if (command.empty()) return;
  const auto work = [&, parent = getpid()] {
    dup2(STDERR_FILENO, STDOUT_FILENO);  // standard output is the command's
    watch(command, stuck_after, folder, run_id, parent);
    return 0;
  };
  child_ = children::Child(work, children::Child::Orphan::dies);
}

}  // namespace tprof::launch
