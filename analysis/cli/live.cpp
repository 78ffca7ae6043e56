// The commands for running jobs.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>

#include "check/names.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "control/control.h"
#include "export/output.h"
#include "launch/environment.h"
#include "live/follow.h"
#include "live/http.h"
#include "live/look.h"
#include "live/table.h"
#include "live/terminal.h"
#include "live/watchdog.h"
#include "read/error.h"
#include "report/findings.h"
#include "report/report.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::cli {

namespace {

live::Look look(const Options& o) {
  return live::look_at(o.folder, o.choice, read::Wanted::counts);
}

std::string page(const live::Look& look) {
  return live::exposition(live::ranks_of(look));
}

// Throws if the file exists and is no file of metrics.
void may_replace(const fs::path& file) {
  std::error_code error;
  const fs::file_status there = fs::symlink_status(file, error);
  if (there.type() == fs::file_type::not_found) return;
  const bool plain = there.type() == fs::file_type::regular;
  if (plain && (begins_with(file, "# HELP tprof_") || fs::file_size(file, error) == 0)) return;
  throw read::BadInput(file, "exists and is no file of tprof metrics: give another name");
}

int write_again_and_again(const Options& o) {
  may_replace(o.textfile);
  live::Signals signals;
  for (;;) {
    const live::Look now = look(o);
    trace_export::Output out(o.textfile, false);  // a reader sees the old file or the new one
    out.put(page(now));
    out.close();
    if (o.interval_s <= 0 && !now.job) throw read::BadInput(now.why);
    if (o.interval_s <= 0 || now.over()) return kOk;
    if (signals.wait(seconds(o.interval_s)) == live::Woken::end) return kOk;
  }
}

int serve(const Options& o) {
  live::Signals signals;
  live::Http http(o.listen);
  text::say("tprof: {}\n", http.url());
  for (;;) {
    const live::Woken woken = signals.wait(std::chrono::hours(24), http.fd());
    if (woken == live::Woken::end) return kOk;
    if (woken == live::Woken::input) http.answer([&] { return page(look(o)); });
  }
}

// Looks for lines as often as writers write. Checking whether the job is over reads every rank
// file, so that is done less often if there are many, and takes at most a tenth of the time.
constexpr std::chrono::milliseconds kBetweenLooks{200};
constexpr std::chrono::nanoseconds kOverPause = std::chrono::milliseconds(600);
constexpr int kOverShare = 10;

using live::Column;
using std::chrono::nanoseconds;

class Top {
 public:
  explicit Top(const Options& o) : options_(o) {}

  // Returns false if there is no job yet.
  bool look() {
    look_ = cli::look(options_);
    shown_.ranks = live::ranks_of(look_);
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
    if (unseen != 0) text += fmt::format(", {} known by snapshots only", unseen);
    if (!look_.job->beside.empty()) text += "\n" + look_.job->beside;
    return text;
  }

  const Options& options_;
  live::Look look_;
  live::StepFiles steps_;
  live::History history_;
  live::Shown shown_;
};

// Looks twice if rates are wanted.
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

int metrics(const Options& o) {
  if (!o.listen.empty()) return serve(o);
  if (!o.textfile.empty()) return write_again_and_again(o);
  const live::Look now = look(o);
  if (!now.job) throw read::BadInput(now.why);
  text::put(page(now));
  return kOk;
}

int tail(const Options& o) {
  if (!fs::is_directory(o.folder)) throw read::BadInput(o.folder, "expected the folder of a job");
  using Steady = std::chrono::steady_clock;
  const bool waits = say_if_none_yet(o.folder);
  live::Signals signals;
  live::FolderLines lines(o.folder, o.from_start || waits);
  auto due = Steady::now();
  for (bool over = false; !over;) {
    // Checked before reading the lines, so that lines written in between are not missed.
    if (const auto now = Steady::now(); now >= due) {
      over = live::look_at(o.folder, {}, read::Wanted::counts).over();
      const auto asked = Steady::now();
      due = asked + std::max<std::chrono::nanoseconds>(kOverPause, kOverShare * (asked - now));
    }
    lines.look(o.format == "table" ? live::Format::table : live::Format::jsonl,
               [](const live::RankLines&, const std::string& all) { text::put(all); });
    if (text::unwritten() != 0) break;
    if (!over && signals.wait(kBetweenLooks) == live::Woken::end) break;
  }
  return kOk;
}

int watch(const Options& o) {
  if (fs::is_directory(o.folder)) say_if_none_yet(o.folder);
  live::Signals signals;
  live::Watchdog dog({.folder = o.folder,
                      .choice = o.choice,
                      .command = o.command,
                      .stuck_after = seconds(o.stuck_after_s),
                      .tell =
                          [](const check::Finding& f) {
                            text::put(report::to_text(f, report::Detail::full));
                            text::unwritten();
                          }},
                     signals.before());
  const auto interval = o.interval_s > 0 ? seconds(o.interval_s) : dog.often_enough();
  if (!dog.look_until_over(signals, interval)) launch::exit_like(signals.ended_by());
  text::put(report::to_text(*dog.said()));
  return check::healthy(dog.said()->findings) ? kOk : kFinding;
}

int ctl(const Options& o) {
  const control::Request asked = control::request_of(o.command, o.argument);
  std::vector<control::Target> targets = control::targets_of(o.folder, o.choice);
  const control::Request request = control::ask(targets, asked);
  text::put(o.json ? control::to_json(request, targets) : control::to_text(request, targets));
  return std::ranges::all_of(targets, control::is_well) ? kOk : kFinding;
}

int top(const Options& o) {
  Top top(o);
  if (o.once || o.json || isatty(STDOUT_FILENO) == 0) return once(top, o);
  const int signal = live_view(top, o);
  if (signal != 0) launch::exit_like(signal);
  return kOk;
}

}  // namespace tprof::cli
