// Prints text on standard output: with colours and line breaks on a terminal, and unchanged into a
// file or a pipe, where COLUMNS gives the width of tables.
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

std::optional<std::size_t> columns_of_terminal();  // nothing if standard output is no terminal
std::size_t width_of_tables(std::size_t otherwise = SIZE_MAX);  // if unknown

// `json`: unchanged, even on terminals.
void show(std::string_view text, bool json = false);

// Shows "merging 41% of 3.20 GiB, 9 s left" on a terminal, for work that takes longer than a
// second.

enum class Of { files, bytes };

// Returns the text for `done` of `total` after this time.
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
