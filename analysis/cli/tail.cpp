#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>

#include "cli/commands.h"
#include "cli/look.h"
#include "live/rank_lines.h"
#include "live/signals.h"
#include "read/error.h"
#include "text/text.h"

namespace tprof::cli {

namespace {

// As often as writers write; and how often it is asked whether the job is over.
constexpr std::chrono::milliseconds kPause{200};
constexpr std::chrono::milliseconds kOverPause{600};

class Tail {
 public:
  explicit Tail(const Options& o) : options_(o) {}

  // Those that were not there before. Of those that were there first, what is written from now on.
  void find_files() {
    for (const read::TraceFile& file : read::files_in(options_.folder)) {
      if (files_.contains(file.path)) continue;
      const bool all = options_.from_start || !first_;
      std::error_code gone;
      const std::uint64_t from = all ? 0 : fs::file_size(file.path, gone);
      if (!gone) files_.emplace(file.path, live::RankLines(file.path, from));
    }
    first_ = false;
  }

  void print() {
    for (auto& [path, file] : files_) {
      try {
        if (file) print(*file);
      } catch (const read::BadInput& e) {
        fmt::print(stderr, "tprof: {}; left out from here on\n", text::printable(e.what()));
        file.reset();
      }
    }
    if (std::fflush(stdout) != 0) throw read::BadInput("standard output", std::strerror(errno));
  }

 private:
  void print(live::RankLines& file) const {
    for (std::string out; file.next(options_.format, out); out.clear()) {
      std::fwrite(out.data(), 1, out.size(), stdout);
    }
  }

  const Options& options_;
  std::map<fs::path, std::optional<live::RankLines>> files_;
  bool first_ = true;
};

}  // namespace

int tail(const Options& o) {
  if (!fs::is_directory(o.folder)) throw read::BadInput(o.folder, "expected the folder of a job");
  using Steady = std::chrono::steady_clock;
  live::Signals signals;
  Tail tail(o);
  auto due = Steady::now();
  for (bool over = false; !over;) {
    // Asked before the lines are read: what is written behind it would be missed.
    if (Steady::now() >= due) {
      over = look_at(o.folder, {}, read::Wanted::counts).over();
      due = Steady::now() + kOverPause;
    }
    tail.find_files();
    tail.print();
    if (!over && signals.wait(kPause) == live::Woken::end) break;
  }
  return kOk;
}

}  // namespace tprof::cli
