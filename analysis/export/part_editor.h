// Edits the lines of a file for the merged trace: calls and their times on the device, however they
// are written, with what viewers get of them, and any other line by its JSON.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <string>

#include "export/call_names.h"
#include "export/chrome.h"
#include "export/flows.h"
#include "export/line_editor.h"
#include "export/pen.h"
#include "export/rates.h"
#include "export/timeline.h"
#include "read/events.h"
#include "read/own_lines.h"

namespace tprof::trace_export {

class PartEditor {
 public:
  // The number of times on the device, each of which may have an arrow.
  static std::int64_t most_arrows(const read::Block& block);
  // Appends the block's lines to `out`, each with a line break before it. Arrows to times on the
  // device have ids from `first_id` on. Throws BadInput.
  void edit(const Part& part, const read::Block& block, const Timeline& timeline,
            std::int64_t first_id, std::string& out);
  const std::vector<InWindow>& moved() const { return moved_; }  // by the calls of that block

 private:
  // A slice as it is written: what was measured, less what overlaps.
  struct Written {
    std::int64_t lane;
    std::int64_t ts_ns;  // on the rank's clock
    std::int64_t dur_ns;
    std::int64_t cut_ns;
  };
  Written written(std::int64_t lane, std::int64_t ts_ns, std::int64_t dur_ns) const;
  void put_slice(const Written& slice, const Placement& to);
  // Ends a line with its arguments and what was cut.
  void put_arguments(std::string_view arguments, const Written& slice);
  bool own_line(const read::Line& line, const Member& last);
  void put(const read::Line& line, const Member& member);
  void put_call(const Member& member, std::string_view arguments);
  void put_time(const Member& member, std::string_view arguments);
  void put_busy(const Member& member);
  void count(const Member& member, const read::Event& e);
  void put_position(const Member& member, std::int64_t ts_ns);
  void put_turn_of_call(const Member& member, const read::Event& e, const Written& slice);
  void put_turn(const Member& member, std::uint32_t channel, std::uint64_t seq, bool receives,
                std::int64_t dur_ns, const Written& slice);
  bool wants(const read::Line& line, const Member& member);
  void go_to(const Member& member);
  const TimedCall* timed(const read::DeviceTime& t);
  std::optional<Bucket> bucket_of(const read::DeviceTime& t, const TimedCall* call);

  const Timeline* timeline_ = nullptr;
  std::string* out_ = nullptr;
  LineEditor editor_;
  simdjson::dom::parser parser_;
  CallNames names_;
  Pen pen_;
  std::string arguments_;
  std::int64_t next_id_ = 0;
  std::vector<InWindow> moved_;
  // Lines use the room of these again.
  read::OwnLines own_;
  read::Event call_;
  read::DeviceTime time_;
  read::Busy busy_;
  // The process whose lines were read last, and where its calls stood.
  const read::Process* process_ = nullptr;
  const RankTimeline* rank_ = nullptr;
  std::size_t near_call_ = 0;
  std::size_t near_time_ = 0;
};

}  // namespace tprof::trace_export
