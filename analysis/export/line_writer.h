// Writes the lines of a file for the merged trace: with another pid, on the common time axis, and
// with names, colours and arrows for viewers.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "export/pen.h"
#include "export/timeline.h"
#include "export/viewers.h"
#include "read/own_lines.h"

namespace tprof::trace_export {

class LineWriter {
 public:
  // Writes the block's lines, each after a line break. `members`: all processes of the file, in
  // order. Throws BadInput.
  void write(const std::vector<Member>& members, const read::Block& block, const Timeline& timeline,
             Pen& out);

  // Writes any line from its JSON. Only pid and times change. Skips lines that are not for the
  // merged trace: those of other tools, process names and arrows, which merge writes anew, the
  // header of a node's file, and filtered lines. Throws read::Malformed.
  void write(std::string_view line, const Member& member, Pen& out);

 private:
  // A slice as written: the measured time minus overlaps.
  struct Written {
    std::int64_t lane;
    std::int64_t ts_ns;  // on the rank's clock
    std::int64_t dur_ns;
    std::int64_t cut_ns;
  };
  Written written(std::int64_t lane, std::int64_t ts_ns, std::int64_t dur_ns) const;
  void put_slice(const Written& slice);
  void put_color(Bucket bucket, std::string_view function);
  // Ends a line with its arguments, the cut and the position at `ts_ns`.
  void put_arguments(std::string_view arguments, const Written& slice, std::int64_t ts_ns);
  bool own_line(const read::Line& line, const Member& last);
  void put(std::string_view line, const Member& member);
  bool go_to(const Member& member);
  void put_call(std::string_view arguments);
  void put_time(std::string_view arguments);
  void put_busy();
  // Writes this rank's end of the arrow between ranks, if there are several ranks.
  void put_turn(const DrawnCall& call, const Written& slice);
  void put_end_of_arrow(std::string_view phase, std::string_view name, std::int64_t id,
                        std::int64_t lane, std::int64_t ts_ns);
  // Returns a line's arguments without those that merge adds, and the end of the line.
  std::string arguments_of(std::string_view line);

  const Timeline* timeline_ = nullptr;
  Pen* out_ = nullptr;
  simdjson::dom::parser parser_;
  CallNames names_;
  // Reused for each line.
  EventFields event_;
  EventFields args_;
  read::Event call_;
  read::DeviceTime time_;
  read::Busy busy_;
  // The rank of the last line read, and the line's position in its calls.
  const Member* member_ = nullptr;
  const RankTimeline* rank_ = nullptr;  // null: none
  std::size_t near_call_ = 0;
  std::size_t near_time_ = 0;
};

}  // namespace tprof::trace_export
