// The commands for jobs that run, but top: metrics, tail, watch and ctl.
#include <algorithm>
#include <chrono>

#include "cli/commands.h"
#include "cli/input.h"
#include "control/answers.h"
#include "control/ask.h"
#include "export/output.h"
#include "launch/command.h"
#include "live/follow.h"
#include "live/http.h"
#include "live/look.h"
#include "live/signals.h"
#include "live/table.h"
#include "live/watchdog.h"
#include "read/error.h"
#include "report/findings.h"
#include "report/report.h"
#include "text/print.h"

namespace tprof::cli {

namespace {

live::Look look(const Options& o) {
  return live::look_at(o.folder, o.choice, read::Wanted::counts);
}

std::string page(const live::Look& look) {
  return live::exposition(look.job ? live::ranks_of(look.traces, look.job->processes)
                                   : std::vector<live::Rank>());
}

// Throws if something is there that is no file of metrics.
void may_replace(const fs::path& file) {
  std::error_code error;
  const fs::file_status there = fs::symlink_status(file, error);
  if (there.type() == fs::file_type::not_found) return;
  const bool plain = there.type() == fs::file_type::regular;
  if (plain && (begins_with(file, "# HELP tprof_") || fs::file_size(file, error) == 0)) return;
  throw read::BadInput(file, "is there, and is no file of tprof metrics: give another name");
}

// Replaces the file in one step, so that a reader sees the old one or the new one.
void write(const fs::path& file, const std::string& text) {
  trace_export::Output out(file, false);
  out.put(text);
  out.close();
}

int print_once(const Options& o) {
  const live::Look now = look(o);
  if (!now.job) throw read::BadInput(now.why);
  text::put(page(now));
  return kOk;
}

int write_again_and_again(const Options& o) {
  may_replace(o.textfile);
  live::Signals signals;
  for (;;) {
    const live::Look now = look(o);
    write(o.textfile, page(now));
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

}  // namespace

int metrics(const Options& o) {
  if (!o.listen.empty()) return serve(o);
  return o.textfile.empty() ? print_once(o) : write_again_and_again(o);
}

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
    lines.look(o.format == "table" ? live::Format::table : live::Format::jsonl, print);
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
