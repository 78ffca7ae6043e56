#include <algorithm>

#include "cli/commands.h"
#include "control/answers.h"
#include "control/ask.h"
#include "text/print.h"

namespace tprof::cli {

int ctl(const Options& o) {
  control::Request request = control::request_of(o.command, o.argument);
  std::vector<control::Target> targets = control::targets_of(o.folder, o.choice);
  const bool together = request.command == Command::window && !request.same_step &&
                        targets.size() > 1 && control::all_in_sight(targets);
  if (together) {
    request = control::ask_for_window(targets, request);
  } else {
    control::ask_all(targets, request);
  }
  const bool apart = request.command == Command::window && !request.same_step && targets.size() > 1;
  if (o.json) {
    text::print("{}\n", control::json_of(request, targets));
  } else {
    for (const control::Target& t : targets) text::print("{}\n", control::line_of(request, t));
    if (apart) {
      text::print("{}\n",
                  together
                      ? "Which steps these are may differ between ranks: the program marks none"
                      : "Which steps these are may differ between ranks, as not all are in sight: "
                        "say which one to begin with on each machine, as in window 3@120");
    }
  }
  return std::ranges::all_of(targets, control::is_well) ? kOk : kFinding;
}

}  // namespace tprof::cli
