// Writes the lines of a file for the merged trace: with another pid and on another axis of time,
// and with what viewers get of calls and of their times on the device.
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
  // Writes the block's lines, each with a line break before it. `members`: all processes of the
  // file, in order. Throws BadInput.
  void write(const std::vector<Member>& members, const read::Block& block, const Timeline& timeline,
             Pen& out);

  // Writes any line by its JSON. Every value stays as it is but pid and times. Leaves it out if it
  // is not for the merged trace: lines of other tools, names of processes and arrows, of which
  // merge writes its own, the header of a node's file, and what nobody asked for. Throws
  // read::Malformed.
  void write(std::string_view line, const Member& member, Pen& out);

 private:
  // A slice as it is written: what was measured, less what overlaps.
  struct Written {
    std::int64_t lane;
    std::int64_t ts_ns;  // on the rank's clock
    std::int64_t dur_ns;
    std::int64_t cut_ns;
  };
  Written written(std::int64_t lane, std::int64_t ts_ns, std::int64_t dur_ns) const;
  void put_slice(const Written& slice);
  void put_color(Bucket bucket, std::string_view function);
  // Ends a line with its arguments, what was cut and the position at `ts_ns`.
  void put_arguments(std::string_view arguments, const Written& slice, std::int64_t ts_ns);
  bool own_line(const read::Line& line, const Member& last);
  void put(std::string_view line, const Member& member);
  bool go_to(const Member& member);
  void put_call(std::string_view arguments);
  void put_time(std::string_view arguments);
  void put_busy();
  // This rank's event of the arrow between ranks, if it is one of several.
  void put_turn(const DrawnCall& call, const Written& slice);
  void put_end_of_arrow(std::string_view phase, std::string_view name, std::int64_t id,
                        std::int64_t lane, std::int64_t ts_ns);
  // Returns the arguments of a line but those that merge adds, and what ends the line.
  std::string arguments_of(std::string_view line);

  const Timeline* timeline_ = nullptr;
  Pen* out_ = nullptr;
  simdjson::dom::parser parser_;
  CallNames names_;
  // Lines use the room of these again.
  EventFields event_;
  EventFields args_;
  read::OwnLines own_;
  read::Event call_;
  read::DeviceTime time_;
  read::Busy busy_;
  // Whose lines were read last, and where its calls stood.
  const Member* member_ = nullptr;
  const RankTimeline* rank_ = nullptr;  // null: nothing is known
  std::size_t near_call_ = 0;
  std::size_t near_time_ = 0;
};

}  // namespace tprof::trace_export
