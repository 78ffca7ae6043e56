#include <algorithm>
#include <chrono>

#include "cli/commands.h"
#include "cli/input.h"
#include "live/folder_lines.h"
#include "live/look.h"
#include "live/signals.h"
#include "read/error.h"
#include "text/print.h"

namespace tprof::cli {

namespace {

// Lines are looked for as often as writers write. Asking whether the job is over takes a look at
// every rank file. So it is done less often if there are many, and takes at most a tenth of the
// time.
constexpr std::chrono::milliseconds kBetweenLooks{200};
constexpr std::chrono::nanoseconds kOverPause = std::chrono::milliseconds(600);
constexpr int kOverShare = 10;

void print(const live::RankLines&, const std::string& lines) {
  text::put(lines);
}

}  // namespace

int tail(const Options& o) {
  if (!fs::is_directory(o.folder)) throw read::BadInput(o.folder, "expected the folder of a job");
  using Steady = std::chrono::steady_clock;
  const bool waits = say_if_none_yet(o.folder);
  live::Signals signals;
  live::FolderLines lines(o.folder, o.from_start || waits);
  auto due = Steady::now();
  for (bool over = false; !over;) {
    // Asked before the lines are read: lines that are written in between would be missed otherwise.
    if (const auto now = Steady::now(); now >= due) {
      over = live::look_at(o.folder, {}, read::Wanted::counts).over();
      const auto asked = Steady::now();
      due = asked + std::max<std::chrono::nanoseconds>(kOverPause, kOverShare * (asked - now));
    }
    lines.look(o.format, print);
    if (text::unwritten() != 0) break;
    if (!over && signals.wait(kBetweenLooks) == live::Woken::end) break;
  }
  return kOk;
}

}  // namespace tprof::cli
