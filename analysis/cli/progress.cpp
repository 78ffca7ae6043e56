#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace tprof::cli {

using namespace std::chrono_literals;

Progress::Progress(std::string what, std::uint64_t total)
    : what_(std::move(what)),
      total_(std::max<std::uint64_t>(total, 1)),
      terminal_(isatty(STDERR_FILENO) == 1),
      due_(Clock::now() + 1s) {}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

void Progress::operator()(std::uint64_t done) {
  if (!terminal_) return;
  const std::lock_guard lock(mutex_);
  if (Clock::now() < due_) return;
  due_ = Clock::now() + 200ms;
  shown_ = true;
  fmt::print(stderr, "\r{} {}%\033[K", what_, std::min<std::uint64_t>(100, done * 100 / total_));
  std::fflush(stderr);
}

}  // namespace tprof::cli
