// Viewers of a merged trace get this besides a rank's lines: it is read from them before they are
// written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "export/meets.h"
#include "export/nesting.h"
#include "run/lines.h"
#include "why/spans.h"

namespace tprof::trace_export {

// A call or a graph launch that has a device time, or arrows: what its lines lack.
struct DrawnCall {
  static constexpr std::uint64_t kNoBytes = (std::uint64_t{1} << 52) - 1;  // not known

  std::int64_t begin_ns = 0;  // on the rank's clock
  std::uint32_t thread = 0;
  std::uint32_t meet = 0;  // id of the arrow between ranks
  std::uint64_t bytes : 52 = kNoBytes;
  std::uint64_t bucket : 7 = 0;
  std::uint64_t turn : 2 = 0;       // Meets::Turn
  std::uint64_t on_device : 1 = 0;  // the arrow touches the device time, not the call
  std::uint64_t receives : 1 = 0;
  std::uint64_t message : 1 = 0;  // else a collective

  std::optional<std::uint64_t> size() const {
    return bytes == kNoBytes ? std::nullopt : std::optional<std::uint64_t>(bytes);
  }
};

struct RankTimeline {
  // Looks from `near` on, which it leaves at the place: lines follow each other in time.
  const DrawnCall* call(std::int64_t begin_ns, std::int64_t thread, std::size_t& near) const;
  // Returns the bucket of a device time whose call has no line, if the ledger leaves only one.
  std::optional<Bucket> bucket_without_line(std::string_view function) const;

  std::uint32_t order = 0;                      // of the ranks
  std::vector<DrawnCall> calls{};               // ascending by begin and thread
  std::int64_t first_arrow = 0;                 // id of the arrow to the first one's device time
  std::map<text::Kept, Bucket> without_line{};  // by function
  std::optional<why::Spans> exposed{};          // on the rank's clock; nullopt: not known
  Nesting slices{};                             // all that its lines have

  struct Arrivals {
    Channel channel;
    std::vector<Arrival> all{};  // ascending by seq, each once; on the rank's clock
  };
  std::vector<Arrivals> arrivals{};  // until all are put together
  std::int64_t last_ns = 0;          // its last call that is shown
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
};

// Reads one rank, which is the `order`-th.
class TimelineLines {
 public:
  TimelineLines(const read::Process& rank, const Reading& reading, const Meets& meets,
                std::uint32_t order);

  void launch(const read::Event& e);
  void range(const read::Range& r);
  void call(const read::Event& e);
  void device_time(const read::DeviceTime& t);
  void busy(const read::Busy& b);
  void end();
  const read::Process& rank() const { return rank_; }
  RankTimeline take() { return std::move(mine_); }

 private:
  struct Call {
    std::int64_t begin_ns;
    std::int64_t dur_ns;
    std::uint32_t thread;
    std::uint32_t channel = kNoChannel;  // in mine_.arrivals
    std::uint64_t seq = 0;
    std::uint64_t bytes = 0;
    Bucket bucket = Bucket::OTHER_COLL;  // of a graph launch, too
    bool receives = false;
    text::Kept function{};
  };
  struct Time {
    std::int64_t begin_ns;
    std::uint32_t thread;
    bool alone;
    why::Span on_device;
  };
  std::uint32_t channel_of(const read::Event& e);
  void match();
  void find_exposed();
  void find_without_line();

  const read::Process& rank_;
  const Reading& reading_;
  const Meets& meets_;
  RankTimeline mine_;
  std::vector<Call> calls_;
  std::vector<Time> times_;
  std::map<std::tuple<std::int64_t, std::int64_t, bool>, std::uint32_t> numbers_;
  std::tuple<std::int64_t, std::int64_t, bool> last_key_{-1, -1, false};
  std::uint32_t last_channel_ = kNoChannel;
  why::Spans communicates_;
  why::Spans hides_;  // computation, and where it is not known
  why::Span followed_{INT64_MAX, INT64_MIN};
  bool computes_ = false;
  // Timed copies that have a line, of each function and bucket.
  std::map<std::pair<text::Kept, Bucket>, std::uint64_t> with_line_;
  bool all_chosen_ = true;
};

}  // namespace tprof::trace_export
