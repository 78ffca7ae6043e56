// What another tool recorded of a rank, as lines for a merged trace, beside those of the rank.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "align/enclosed.h"
#include "export/line_editor.h"

namespace tprof::trace_export {

// CLOCK_REALTIME of its host where its first event began is `begin_ns`.
class OtherTrace {
 public:
  virtual ~OtherTrace() = default;
  OtherTrace(const OtherTrace&) = delete;
  OtherTrace& operator=(const OtherTrace&) = delete;

  // As it says itself; nothing: it doesn't.
  virtual std::optional<std::int64_t> rank() const = 0;
  virtual std::int64_t begin_ns() const = 0;
  // Marks of collectives that enclose the library's call, by CLOCK_REALTIME, in their order.
  virtual const std::vector<align::Stay>& collectives() const = 0;

  // Appends all its events, each with ",\n" before it, and calls `full` whenever there is a
  // mebibyte of them. `to`: as of a process whose ts 0 is CLOCK_REALTIME 0. `number`: of the
  // trace, which tells its lanes and arrows from those of others.
  virtual void put(const Placement& to, std::size_t number, std::string& out,
                   const std::function<void(std::string&)>& full) = 0;

 protected:
  OtherTrace() = default;
};

}  // namespace tprof::trace_export
