#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "check/names.h"
#include "cli/commands.h"
#include "launch/command.h"
#include "live/follow.h"
#include "live/look.h"
#include "live/signals.h"
#include "live/table.h"
#include "live/terminal.h"
#include "read/error.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::cli {

namespace {

using live::Column;
using std::chrono::nanoseconds;

class Top {
 public:
  explicit Top(const Options& o) : options_(o) {}

  // Returns false if there is no job yet.
  bool look() {
    look_ = live::look_at(options_.folder, options_.choice, read::Wanted::counts);
    shown_.ranks =
        look_.job ? live::ranks_of(look_.traces, look_.job->processes) : std::vector<live::Rank>();
    steps_.look(shown_.ranks);
    history_.look(shown_.ranks);
    shown_.history = &history_;
    shown_.title = title();
    return look_.job.has_value();
  }

  const std::string& why() const { return look_.why; }
  const live::Shown& shown() const { return shown_; }

  // Returns false if the key ends the program.
  bool key(char c) {
    const auto column = static_cast<std::size_t>(shown_.sorted_by);
    if (c == 'q') return false;
    if (c == 'r') history_.reset();
    if (c == 's') shown_.sorted_by = static_cast<Column>((column + 1) % live::kColumns);
    if (c >= '1' && c <= '9') shown_.sorted_by = static_cast<Column>(c - '1');
    if (c == 'b') shown_.bucket = (shown_.bucket + 1) % (live::kAllBuckets + 1);
    return true;
  }

  void show() const {
    const std::string last =
        fmt::format(" q quit  s,1-9 sort: {}  b bucket: {}  r count from now",
                    name_of_column(shown_.sorted_by), live::name_of_bucket(shown_.bucket));
    live::Terminal::show(live::to_text(shown_, live::Terminal::size().lines - 1), last);
  }

 private:
  std::string title() const {
    const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    std::string text = fmt::format("{:%H:%M:%S} UTC  ", fmt::gmtime(now));
    if (!look_.job) return text + "no rank has begun yet: " + text::printable(look_.why);
    const auto running = std::ranges::count_if(shown_.ranks, &live::Rank::runs);
    text += fmt::format("{}: {} of {} run", text::printable(look_.job->label), running,
                        check::counted(shown_.ranks.size(), "rank"));
    if (const auto quiet = live::quiet_ns(shown_.ranks)) {
      text += fmt::format(", no call for {}", check::duration(*quiet));
    }
    const auto unseen = std::ranges::count_if(
        shown_.ranks, [](const live::Rank& rank) { return rank.process->snapshot; });
    if (unseen != 0) text += fmt::format(", of {} only snapshots are in sight", unseen);
    if (!look_.job->beside.empty()) text += "\n" + look_.job->beside;
    return text;
  }

  const Options& options_;
  live::Look look_;
  live::StepFiles steps_;
  live::History history_;
  live::Shown shown_;
};

// Looks twice if rates are asked for.
int once(Top& top, const Options& o) {
  bool there = top.look();
  if (there && o.interval_s > 0) {
    live::Signals signals;
    if (signals.wait(seconds(o.interval_s)) == live::Woken::end) return kFinding;
    there = top.look();
  }
  if (!there) throw read::BadInput(top.why());
  text::put(o.json ? live::to_json(top.shown()) : live::to_text(top.shown()));
  return kOk;
}

// Returns the signal that ended it, or 0 if a key did.
int live_view(Top& top, const Options& o) {
  using Steady = std::chrono::steady_clock;
  live::Signals signals;
  const live::Terminal terminal;
  const nanoseconds interval = seconds(o.interval_s > 0 ? o.interval_s : 2);
  for (auto due = Steady::now();;) {
    if (Steady::now() >= due) {
      top.look();
      due = Steady::now() + interval;
    }
    top.show();
    const live::Woken woken = signals.wait(due - Steady::now(), terminal.keys());
    if (woken == live::Woken::end) return signals.ended_by();
    if (woken != live::Woken::input) continue;
    for (const char c : terminal.typed()) {
      if (!top.key(c)) return 0;
    }
  }
}

}  // namespace

int top(const Options& o) {
  Top top(o);
  if (o.once || o.json || isatty(STDOUT_FILENO) == 0) return once(top, o);
  const int signal = live_view(top, o);
  if (signal != 0) launch::exit_like(signal);
  return kOk;
}

}  // namespace tprof::cli
