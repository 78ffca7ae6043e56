// Another tool's recording of a rank in Chrome's format, compressed or not: PyTorch's profiler,
// Composer's JSONTraceHandler. Its events become lines of a merged trace, beside those of the rank.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "align/enclosed.h"
#include "export/event_fields.h"
#include "export/nesting.h"
#include "export/placement.h"

namespace tprof::trace_export {

// Above every thread id, and the lanes of ranges (2^22) and streams (2^23).
inline constexpr std::int64_t kFirstOtherLane = std::int64_t{1} << 24;
// The number of lanes that each trace has for itself.
inline constexpr std::int64_t kOtherLanes = std::int64_t{1} << 16;

constexpr std::int64_t first_lane_of(std::size_t number) {
  return kFirstOtherLane + static_cast<std::int64_t>(number) * kOtherLanes;
}

class OtherTrace {
 public:
  // Reads the file once, event by event. Throws BadInput with line and byte if it is no such trace,
  // or if nothing says at which moment its times begin: `baseTimeNanoseconds` (PyTorch's, since
  // 2.2), or ts that are microseconds since 1970.
  explicit OtherTrace(std::filesystem::path file);

  // Returns the rank that the trace itself names; nullopt if it names none.
  std::optional<std::int64_t> rank() const { return rank_; }
  // By CLOCK_REALTIME of its host: when its first event began, and its last one.
  std::int64_t begin_ns() const { return base_ns_ + begin_; }
  std::int64_t end_ns() const { return base_ns_ + end_; }
  // Returns the marks of collectives, which enclose the library's calls, by CLOCK_REALTIME and in
  // order.
  const std::vector<align::Stay>& collectives() const { return collectives_; }
  // Events whose ts is 0, which is no time in either way of counting it, and slices whose length is
  // negative.
  std::uint64_t left_out() const { return left_out_; }

  // Reads it again and writes all its events, each with ",\n" before it. Calls `full` with a
  // mebibyte of them, and with the rest; it clears them. `to` is the place of a process whose ts 0
  // is CLOCK_REALTIME 0. `number` is the trace's, and tells its lanes from those of others. Ids
  // become numbers from `next_id` on.
  void put(const Placement& to, std::size_t number, std::int64_t& next_id,
           const std::function<void(Pen&)>& full);

 private:
  struct Event;
  template <typename F>
  std::string each_event(F&& f) const;  // returns all else
  void look_at(const Event& e);
  std::int64_t lane(const Event& e);
  std::int64_t number_of(const Event& e, std::string_view kind, std::int64_t& next_id);
  void put_event(Event& e, const Placement& to, std::int64_t lane, std::int64_t& next_id, Pen& out);

  std::filesystem::path file_;
  std::optional<std::int64_t> rank_;
  std::int64_t base_ns_ = 0;  // CLOCK_REALTIME at its ts 0
  std::int64_t begin_ = INT64_MAX;
  std::int64_t end_ = INT64_MIN;
  std::uint64_t left_out_ = 0;
  std::vector<align::Stay> collectives_;
  Nesting slices_;
  std::map<std::pair<std::string, std::string>, std::int64_t> lanes_;  // by process and thread
  std::map<std::string, std::int64_t, std::less<>> ids_;
};

}  // namespace tprof::trace_export
