// Edits the lines of a file for the merged trace: calls and their times on the device, however they
// are written, with what viewers get of them, and any other line by its JSON.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <string>
#include <vector>

#include "export/call_names.h"
#include "export/line_editor.h"
#include "export/pen.h"
#include "export/rates.h"
#include "export/timeline.h"
#include "read/events.h"
#include "read/own_lines.h"

namespace tprof::trace_export {

class PartEditor {
 public:
  // Writes the block's lines, each with a line break before it. Throws BadInput.
  void edit(const Part& part, const read::Block& block, const Timeline& timeline, Pen& out);
  const std::vector<InWindow>& moved() const { return moved_; }  // by the calls of that block

 private:
  // A slice as it is written: what was measured, less what overlaps.
  struct Written {
    std::int64_t lane;
    std::int64_t ts_ns;  // on the rank's clock
    std::int64_t dur_ns;
    std::int64_t cut_ns;
  };
  // A place on a lane, on the axis of the merged trace.
  struct Touch {
    std::int64_t lane;
    std::int64_t ts_ns;
  };
  Written written(std::int64_t lane, std::int64_t ts_ns, std::int64_t dur_ns) const;
  void put_slice(const Written& slice);
  // Ends a line with its arguments, what was cut and the position at `ts_ns`.
  void put_arguments(std::string_view arguments, const Written& slice, std::int64_t ts_ns);
  bool own_line(const read::Line& line, const Member& last);
  void put(const read::Line& line, const Member& member);
  bool go_to(const Member& member);
  void put_call(std::string_view arguments);
  void put_time(std::string_view arguments);
  void put_busy();
  // This rank's event of the arrow between ranks, if it is one of several.
  void put_turn(const DrawnCall& call, const Written& slice);
  void put_end_of_arrow(std::string_view phase, std::string_view name, std::int64_t id,
                        const Touch& at);

  const Timeline* timeline_ = nullptr;
  Pen* out_ = nullptr;
  LineEditor editor_;
  simdjson::dom::parser parser_;
  CallNames names_;
  std::vector<InWindow> moved_;
  // Lines use the room of these again.
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
