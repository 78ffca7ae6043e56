#include "cli/commands.h"
#include "cli/input.h"
#include "launch/command.h"
#include "live/signals.h"
#include "live/watchdog.h"
#include "report/findings.h"
#include "report/report.h"
#include "text/print.h"

namespace tprof::cli {

int watch(const Options& o) {
  if (fs::is_directory(o.folder)) say_if_none_yet(o.folder);
  live::Signals signals;
  live::Watchdog dog({.folder = o.folder,
                      .choice = o.choice,
                      .command = o.command,
                      .stuck_after = seconds(o.stuck_after_s),
                      .tell =
                          [](const diagnose::Finding& f) {
                            text::put(report::to_text(f, report::Detail::full));
                            text::unwritten();
                          }},
                     signals.before());
  const auto interval = o.interval_s > 0 ? seconds(o.interval_s) : dog.often_enough();
  if (!dog.look_until_over(signals, interval)) launch::exit_like(signals.ended_by());
  text::put(report::to_text(*dog.said()));
  return diagnose::healthy(dog.said()->findings) ? kOk : kFinding;
}

}  // namespace tprof::cli
