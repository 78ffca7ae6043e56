// Another tool's trace of a rank in Chrome's format, compressed or not: PyTorch's profiler,
// Composer's JSONTraceHandler. Its events become lines of the merged trace, beside the rank's own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "align/enclosed.h"
#include "export/pen.h"
#include "export/placement.h"
#include "export/viewers.h"
#include "run/lines.h"

namespace tprof::trace_export {

// Above all thread ids, and the lanes of ranges (2^22) and streams (2^23).
inline constexpr std::int64_t kFirstOtherLane = std::int64_t{1} << 24;
// The number of lanes reserved for each trace.
inline constexpr std::int64_t kOtherLanes = std::int64_t{1} << 16;

class OtherTrace {
 public:
  // Reads the file once, event by event. Throws BadInput with line and byte if it is no such trace,
  // or if the origin of its times is unknown: it needs `baseTimeNanoseconds` (PyTorch since 2.2),
  // or ts in microseconds since 1970.
  explicit OtherTrace(std::filesystem::path file);

  // Returns the rank named in the trace; nullopt if none.
  std::optional<std::int64_t> rank() const { return rank_; }
  // When its first and its last event began, by CLOCK_REALTIME of its host.
  std::int64_t begin_ns() const { return base_ns_ + begin_; }
  std::int64_t end_ns() const { return base_ns_ + end_; }
  // Returns the marks of collectives, which enclose the library's calls, in order of
  // CLOCK_REALTIME.
  const std::vector<align::Stay>& collectives() const { return collectives_; }
  // Events whose ts is 0, which is no time in either way of counting it, and slices whose length is
  // negative.
  std::uint64_t left_out() const { return left_out_; }

  // Reads it again and writes all its events, each with ",\n" before it. Calls `full` with a
  // mebibyte of them, and with the rest; it clears them. `to` is the place of a process whose ts 0
  // is CLOCK_REALTIME 0. Its lanes are from `first_lane` on. Ids become numbers from `next_id` on.
  void put(const Placement& to, std::int64_t first_lane, std::int64_t& next_id,
           const std::function<void(Pen&)>& full);

 private:
  struct Event {
    EventFields fields{};
    std::int64_t at = 0;
    std::int64_t dur_ns = 0;

    void read(std::string_view text);
    std::string_view operator[](std::string_view key) const { return fields[key]; }
    bool metadata() const { return fields["ph"] == "\"M\""; }
    bool slice() const { return fields["ph"] == "\"X\"" && !fields["dur"].empty(); }
    bool has_time() const { return !metadata() && !fields["ts"].empty(); }
    bool timed() const { return at != 0 && dur_ns >= 0; }
  };
  std::string each_event(const std::function<void(Event&)>& f) const;  // returns all else
  std::int64_t lane(const Event& e);
  std::string id_of(const Event& e, std::int64_t& next_id);  // empty: it has none
  void move(Event& e, const Placement& to, std::int64_t& next_id);

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

struct OtherFile {
  std::filesystem::path file;
  std::shared_ptr<OtherTrace> trace;
  const read::Process* process;  // the process of its rank
  // By what its clock was refined: collectives that both it and we saw; nullopt: the host's wall
  // clock, as the tool took it, and why.
  std::optional<align::Shift> shift{};
  std::string why{};

  std::int64_t shift_ns() const { return shift ? shift->ns : 0; }
  // ts of its first event, on that process's axis
  std::int64_t begin_ns() const {
    return trace->begin_ns() - process->header.base_time_ns + shift_ns();
  }
  // By which clock it is on the axis, as a sentence for the trace and for people.
  std::string clock() const;
};

// `with` has files, folders and patterns, each maybe with RANK= before it. That is a file's rank,
// else the one that it names itself, else the number after "rank" in its name, else that of the
// only process. Leaves out files that can't be read, for which none of these tells, that are of
// ranks which are not among `chosen`, or of another time than their rank, and says so in `skipped`.
// Throws BadInput if none is left, or if there is no such file.
std::vector<OtherFile> other_files(const std::vector<std::string>& with,
                                   const std::vector<const read::Process*>& chosen,
                                   const run::Lines& lines, std::vector<read::Skipped>& skipped);

// Returns notes for people on the clocks by which the files are on the axis, on how many of our
// collectives they have, and on what was left out of them.
std::vector<std::string> notes(const std::vector<OtherFile>& others);

}  // namespace tprof::trace_export
