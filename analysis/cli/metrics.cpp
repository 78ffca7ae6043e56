#include <fmt/format.h>

#include <chrono>
#include <fstream>

#include "cli/commands.h"
#include "live/exposition.h"
#include "live/http.h"
#include "live/look.h"
#include "live/signals.h"
#include "read/error.h"

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

// Replaces the file in one step, so that a reader sees the old one or the new one.
void write(const fs::path& file, const std::string& text) {
  const fs::path part = file.string() + ".part";
  std::ofstream out(part, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) throw read::BadInput(part, "cannot be written");
  fs::rename(part, file);
}

int write_again_and_again(const Options& o) {
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
  fmt::print(stderr, "tprof: {}\n", http.url());
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
