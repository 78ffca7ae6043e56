// Puts text for people on standard output: on a terminal with colours, and with long sentences
// broken at its right side. Into a file or a pipe it goes as it is, one line per sentence. COLUMNS
// says how wide tables are there.
#pragma once

#include <unistd.h>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "interpose/base/not_copied.h"

namespace tprof::cli {

std::optional<std::size_t> columns_of_terminal();  // nothing where standard output is none
std::size_t width_of_tables(std::size_t otherwise = SIZE_MAX);  // where nothing says how wide

// `json`: as it is, on terminals too.
void show(std::string_view text, bool json = false);

// Shows "merging 41% of 3.20 GiB, 9 s left" on a terminal, for work that takes longer than a
// second.

enum class Of { files, bytes };

// Returns what is shown when `done` of `total` took so long.
std::string progress_text(const std::string& what, std::uint64_t done, std::uint64_t total, Of of,
                          std::chrono::nanoseconds took);

class Progress : NotCopied {
 public:
  Progress(std::string what, std::uint64_t total, Of of = Of::files)
      : what_(std::move(what)), total_(total), of_(of) {}
  ~Progress();

  // May be called from any thread.
  void operator()(std::uint64_t done);

 private:
  using Clock = std::chrono::steady_clock;

  std::mutex mutex_;
  const std::string what_;
  const std::uint64_t total_;
  const Of of_;
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
  const Clock::time_point begun_ = Clock::now();
  Clock::time_point due_ = begun_ + std::chrono::seconds(1);
  bool shown_ = false;
};

}  // namespace tprof::cli
