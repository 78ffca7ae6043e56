// The single calls that took longest.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collect/passes.h"
#include "read/events.h"
#include "stats/steps.h"

namespace tprof::stats {

struct SlowCall {
  const read::Process* rank = nullptr;
  std::int64_t time_ns = 0;
  std::int64_t ts_ns = 0;                    // when the host called; of its process
  std::optional<std::int64_t> step{};        // in which it did
  std::optional<read::DeviceTime> device{};  // nothing: the time is the host's
  std::optional<read::Event> line{};         // the call's, of several the first's
  std::uint64_t calls = 1;                   // that have the time together: of a group
  std::optional<std::uint64_t> bytes{};      // of all of them
};

struct Slowest {
  bool on_device = false;    // the times are the device's; else the host's
  std::uint64_t looked = 0;  // calls that have such a time
  // The longest first. A collective is in it once: of the rank that it took longest.
  std::vector<SlowCall> calls;
};

// The `most` slowest of calls that have a line; in these steps, where any are asked for. By the
// device's time where calls have one, else by the host's. From the lines of the next pass, and
// where the device tells of the one behind; until then `found`, of which `step` is, stays where it
// is. Files that can't be read are left out.
void want_slowest(collect::Passes& passes, std::size_t most, const steps::Found& found,
                  const std::optional<StepRange>& only, std::optional<Slowest>& to);

}  // namespace tprof::stats
