// The single calls that took longest.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "read/events.h"
#include "run/lines.h"
#include "steps/found.h"

namespace tprof::tables {

struct SlowCall {
  const read::Process* rank = nullptr;
  std::int64_t time_ns = 0;
  read::Event line{};                    // of a group, the first call's
  std::optional<std::int64_t> step{};    // in which it called
  std::uint64_t calls = 1;               // more than 1: a group that has one time
  std::optional<std::uint64_t> bytes{};  // of all of them; nullopt: not all have a line
};

struct Slowest {
  bool on_device = false;    // the times are the device's; else the host's
  std::uint64_t looked = 0;  // calls that have such a time
  // The longest first. A collective is listed once, for the rank on which it took longest.
  std::vector<SlowCall> calls;
};

// Finds the `most` slowest calls that have a line. Uses the device's times if any call has one,
// else the host's. Leaves out files that can't be read.
Slowest slowest_of(const run::Lines& lines, std::size_t most, const steps::Found& found);

}  // namespace tprof::tables
