// Reads the lines of a job before merging, for what viewers get in addition: arrows between ranks,
// sizes of device times, lanes of steps and exposed communication, rates.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "export/pen.h"
#include "export/placement.h"
#include "export/viewers.h"
#include "run/intervals.h"
#include "run/lines.h"

namespace tprof::trace_export {

// When a rank came to a collective or message. none: nobody else came.
enum class Turn : std::uint8_t { none, first, between, last };

// Additions to the lines of a call or graph launch with a device time or arrows.
struct DrawnCall {
  static constexpr std::uint64_t kNoBytes = (std::uint64_t{1} << 52) - 1;  // unknown

  std::int64_t begin_ns = 0;  // on the rank's clock
  std::uint32_t thread = 0;
  std::uint32_t meet = 0;  // id of the arrow between ranks
  std::uint64_t bytes : 52 = kNoBytes;
  std::uint64_t bucket : 7 = 0;
  std::uint64_t turn : 2 = 0;
  std::uint64_t on_device : 1 = 0;  // the arrow touches the device time rather than the call
  std::uint64_t receives : 1 = 0;
  std::uint64_t message : 1 = 0;  // else a collective

  std::optional<std::uint64_t> size() const {
    return bytes == kNoBytes ? std::nullopt : std::optional<std::uint64_t>(bytes);
  }
};

struct RankTimeline {
  // Searches from `near` on, and updates it, as lines are in time order.
  const DrawnCall* call(std::int64_t begin_ns, std::int64_t thread, std::size_t& near) const;
  // Returns the bucket of a device time without a call line, if the ledger leaves only one.
  std::optional<Bucket> bucket_without_line(std::string_view function) const;

  std::vector<DrawnCall> calls{};               // ascending by begin and thread
  std::int64_t first_arrow = 0;                 // id of the arrow to the first one's device time
  std::map<text::Kept, Bucket> without_line{};  // by function
  std::optional<run::Intervals> exposed{};      // on the rank's clock; nullopt: unknown
  Nesting slices{};                             // all slices of its lines
  // Bytes of calls that began in each window.
  std::array<std::vector<std::uint64_t>, kBucketCount> rates{};
};

// The moment at which an arrow between ranks touches a call or its device time: inside rather than
// on its edge, if it is long enough. A message arrives at the end of the receive, anything else
// when the rank came.
inline std::int64_t touched_ns(std::int64_t ts_ns, std::int64_t dur_ns, bool receives) {
  const std::int64_t inside = dur_ns > 1 ? 1 : 0;
  return receives ? ts_ns + std::max<std::int64_t>(dur_ns - 1, 0) : ts_ns + inside;
}

class Timeline {
 public:
  // Uses the lines of these processes, which all have a placement.
  Timeline(const Members& members, const filter::Selection& asked, bool arrows);

  std::int64_t next_arrow() const { return next_arrow_; }  // an unused arrow id
  const steps::Found& found() const { return found_; }
  const RankTimeline* of(const read::Process& process) const;  // null: none

  // Writes the lines of a process's own lanes, each after a line break.
  void write_lanes(const Member& member, Pen& out) const;

 private:
  const filter::Filter& only_;
  steps::Found found_;
  std::int64_t window_ns_ = 1;  // of rates
  std::map<const read::Process*, RankTimeline> ranks_;
  std::int64_t next_arrow_ = 0;
};

// Returns the shortest of 1, 2, 5, 10… ms with at most 1,000 windows in this length.
std::int64_t window_of(std::int64_t length_ns);

}  // namespace tprof::trace_export
