// Another tool's recording of a rank, as lines for a merged trace, beside those of the rank.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "align/enclosed.h"
#include "export/line_editor.h"

namespace tprof::trace_export {

// begin_ns() is CLOCK_REALTIME of its host when its first event began.
class OtherTrace {
 public:
  virtual ~OtherTrace() = default;
  OtherTrace(const OtherTrace&) = delete;
  OtherTrace& operator=(const OtherTrace&) = delete;

  // Returns the rank that the trace itself names; nullopt if it names none.
  virtual std::optional<std::int64_t> rank() const = 0;
  virtual std::int64_t begin_ns() const = 0;
  // Returns the marks of collectives, which enclose the library's calls, by CLOCK_REALTIME and in
  // order.
  virtual const std::vector<align::Stay>& collectives() const = 0;

  // Appends all its events, each with ",\n" before it, and calls `full` whenever there is a
  // mebibyte of them. `to` is the place of a process whose ts 0 is CLOCK_REALTIME 0. `number` is
  // the trace's, and tells its lanes and arrows from those of others.
  virtual void put(const Placement& to, std::size_t number, std::string& out,
                   const std::function<void(std::string&)>& full) = 0;

 protected:
  OtherTrace() = default;
};

}  // namespace tprof::trace_export
