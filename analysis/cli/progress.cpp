#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "text/print.h"
#include "text/text.h"

namespace tprof::cli {

std::string progress_text(const std::string& what, std::uint64_t done, std::uint64_t total, Of of,
                          std::chrono::nanoseconds took) {
  done = std::min(done, total);
  const double share = total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  std::string text =
      fmt::format("{} {:.0f}% of {}", what, std::floor(100 * share),
                  of == Of::bytes ? text::bytes(total) : text::thousands(total) + " files");
  if (done == 0) return text;
  const double seconds = std::chrono::duration<double>(took).count();
  return text + fmt::format(", {:.0f} s left", std::ceil(seconds / share - seconds));
}

Progress::~Progress() {
  if (shown_) text::say("\r\033[K");
}

void Progress::operator()(std::uint64_t done) {
  if (!terminal_) return;
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (now < due_) return;
  due_ = now + std::chrono::milliseconds(200);
  shown_ = true;
  text::say("\r{}\033[K", progress_text(what_, done, total_, of_, now - begun_));
}

}  // namespace tprof::cli
