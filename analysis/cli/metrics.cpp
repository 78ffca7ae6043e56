#include <cerrno>
#include <chrono>
#include <fstream>

#include "cli/commands.h"
#include "live/exposition.h"
#include "live/http.h"
#include "live/look.h"
#include "live/signals.h"
#include "read/error.h"
#include "text/print.h"

namespace tprof::cli {

namespace {

using std::chrono::hours;

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
  constexpr std::string_view kOurs = "# HELP tprof_";
  std::string begin(kOurs.size(), '\0');
  if (there.type() == fs::file_type::regular) {
    std::ifstream(file, std::ios::binary).read(begin.data(), kOurs.size());
    if (begin == kOurs || fs::file_size(file, error) == 0) return;
  }
  throw read::BadInput(file, "is there, and is no file of tprof metrics: give another name");
}

// Replaces the file in one step, so that a reader sees the old one or the new one.
void write(const fs::path& file, const std::string& text) {
  const fs::path part = file.string() + ".part";
  std::ofstream out(part, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) {
    const int error = errno;
    std::error_code ignored;
    fs::remove(part, ignored);
    throw read::not_written(file, error);
  }
  fs::rename(part, file);
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
    const live::Woken woken = signals.wait(hours(24), http.fd());
    if (woken == live::Woken::end) return kOk;
    if (woken == live::Woken::input) http.answer([&] { return page(look(o)); });
  }
}

}  // namespace

int metrics(const Options& o) {
  if (o.textfile.empty() == o.listen.empty()) {
    throw read::BadInput("expected --textfile FILE or --listen ADDR:PORT");
  }
  return o.listen.empty() ? write_again_and_again(o) : serve(o);
}

}  // namespace tprof::cli
