// A trace that another tool wrote in Chrome's format (PyTorch's profiler, Composer's
// JSONTraceHandler), as lines for a merged trace, beside those of its rank.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "export/line_editor.h"

namespace tprof::trace_export {

class OtherTrace {
 public:
  // Reads the whole file, plain or gzip. Throws BadInput where it is no such trace, or where
  // nothing tells which moment its ts 0 is: neither `baseTimeNanoseconds` (PyTorch's, since 2.2)
  // nor ts that are microseconds since 1970.
  explicit OtherTrace(const std::filesystem::path& file);

  const std::filesystem::path& file() const { return file_; }
  // As its `distributedInfo` (PyTorch's) has it; nothing: it has none.
  std::optional<std::int64_t> rank() const { return rank_; }
  // CLOCK_REALTIME of its host when its first event began.
  std::int64_t begin_ns() const { return begin_ns_; }

  // Appends all its events, each with ",\n" before it, and calls `full` whenever there is a
  // mebibyte of them. `to`: as of a process whose ts 0 is CLOCK_REALTIME 0. `number`: of the file,
  // which tells its arrows from those of others.
  void put(const Placement& to, std::size_t number, std::string& out,
           const std::function<void(std::string&)>& full);

 private:
  template <typename F>
  void each_event(F&& f);

  std::filesystem::path file_;
  simdjson::padded_string text_;  // without white space
  std::optional<std::int64_t> rank_;
  std::int64_t base_ns_ = 0;  // CLOCK_REALTIME at its ts 0
  std::int64_t begin_ns_ = 0;
};

}  // namespace tprof::trace_export
