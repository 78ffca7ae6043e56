// Viewers of a merged trace get this besides a rank's lines: it is read from them before they are
// written.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "export/nesting.h"
#include "export/placement.h"
#include "run/intervals.h"
#include "run/lines.h"

namespace tprof::trace_export {

// When a rank's turn was in what it did together with others. none: nobody else came.
enum class Turn : std::uint8_t { none, first, between, last };

// A call or a graph launch that has a device time, or arrows: what its lines lack.
struct DrawnCall {
  static constexpr std::uint64_t kNoBytes = (std::uint64_t{1} << 52) - 1;  // not known

  std::int64_t begin_ns = 0;  // on the rank's clock
  std::uint32_t thread = 0;
  std::uint32_t meet = 0;  // id of the arrow between ranks
  std::uint64_t bytes : 52 = kNoBytes;
  std::uint64_t bucket : 7 = 0;
  std::uint64_t turn : 2 = 0;
  std::uint64_t on_device : 1 = 0;  // the arrow touches the device time, not the call
  std::uint64_t receives : 1 = 0;
  std::uint64_t message : 1 = 0;  // else a collective

  std::optional<std::uint64_t> size() const {
    return bytes == kNoBytes ? std::nullopt : std::optional<std::uint64_t>(bytes);
  }
};

// Calls that meet: the collectives of a communicator, or what one of its ranks sends to another.
struct Channel {
  text::Kept comm{};  // its id
  std::int64_t nranks = 0;
  std::int64_t from = -1;  // -1: all
  std::int64_t to = -1;

  auto operator<=>(const Channel&) const = default;  // NOLINT(modernize-use-nullptr)
};
struct Arrival {
  std::uint64_t seq = 0;
  std::int64_t at_ns = 0;  // on the axis of the merged trace
  std::uint32_t rank = 0;  // in the order of their lines
  std::uint32_t call = 0;  // of its rank's
};

struct RankTimeline {
  // Looks from `near` on, which it leaves at the place: lines follow each other in time.
  const DrawnCall* call(std::int64_t begin_ns, std::int64_t thread, std::size_t& near) const;
  // Returns the bucket of a device time whose call has no line, if the ledger leaves only one.
  std::optional<Bucket> bucket_without_line(std::string_view function) const;

  std::vector<DrawnCall> calls{};               // ascending by begin and thread
  std::int64_t first_arrow = 0;                 // id of the arrow to the first one's device time
  std::map<text::Kept, Bucket> without_line{};  // by function
  std::optional<run::Intervals> exposed{};      // on the rank's clock; nullopt: not known
  Nesting slices{};                             // all that its lines have
  std::map<Channel, std::vector<Arrival>> arrivals{};  // until all are put together
  // Bytes of the calls that began in each window.
  std::array<std::vector<std::uint64_t>, kBucketCount> rates{};
};

// The moment of a call or of its device time at which the arrow between ranks touches it: not on
// the edge between two, if it is long enough. A message arrives at the end of the receive, anything
// else when the rank came.
inline std::int64_t touched_ns(std::int64_t ts_ns, std::int64_t dur_ns, bool receives) {
  const std::int64_t inside = dur_ns > 1 ? 1 : 0;
  return receives ? ts_ns + std::max<std::int64_t>(dur_ns - 1, 0) : ts_ns + inside;
}

struct Reading {
  std::size_t most_calls = 0;  // of one rank
  bool arrows = false;
  std::int64_t window_ns = 1;  // of rates
};

// Reads the lines of ranks, each of which has a place among the members, and is the `order`-th.
std::map<const read::Process*, RankTimeline> read_timelines(
    const run::Lines& lines, const Members& members,
    const std::map<const read::Process*, std::uint32_t>& order, const Reading& reading);

}  // namespace tprof::trace_export
