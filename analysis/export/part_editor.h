// Edits the lines of a file for the merged trace: most as the library writes them, at once, and any
// other by its JSON.
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
  // Appends the block's lines to `out`, each with a line break before it. Throws BadInput.
  void edit(const Part& part, const read::Block& block, const Timeline& timeline, std::string& out);
  const std::vector<InWindow>& moved() const { return moved_; }  // by the calls of that block

 private:
  bool own_line(const read::Line& line, const Member& last);
  void put(const read::Line& line, const Member& member);
  void put_call(const Member& member, std::string_view arguments);
  void put_time(const Member& member, const read::OwnArguments& own);
  void put_busy(const Member& member);
  void count(const Member& member, const read::Event& e);
  void put_position(const Member& member, std::int64_t ts_ns);
  void put_turn_of_call(const Member& member, const read::Event& e);
  void put_arrows_of_time(const Member& member, const read::DeviceTime& t, const TimedCall* call,
                          const Began& began);
  bool wants(const read::Line& line, const Member& member);
  void go_to(const Member& member);
  const TimedCall* timed(const read::DeviceTime& t);
  std::optional<Bucket> bucket_of(const read::DeviceTime& t, const TimedCall* call);
  void show(std::string_view function, Bucket bucket, std::optional<std::uint64_t> bytes);

  const Timeline* timeline_ = nullptr;
  std::string* out_ = nullptr;
  LineEditor editor_;
  simdjson::dom::parser parser_;
  CallNames names_;
  Pen pen_;
  Shown shown_;
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
