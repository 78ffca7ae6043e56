// Turns metadata lines (tprof_header, tprof_comm, tprof_ledger, ...) into processes.
#pragma once

#include <simdjson.h>

#include <filesystem>
#include <string_view>
#include <vector>

#include "read/begins.h"
#include "read/json.h"
#include "read/lines.h"
#include "read/process.h"

namespace tprof::read {

// The writer puts the name first, so one comparison tells the few lines that matter here from
// millions of events. A name that begins with an escape may be any name.
inline bool is_metadata(std::string_view line) {
  return begins(line, "{\"name\":\"tprof_") || line.starts_with("{\"name\":\"\\");
}
// True for an NVTX range or a scope. The program chooses its name, which may be any text.
inline bool is_range(std::string_view line) {
  return begins(line, "{\"cat\":\"NVTX\",");
}
// True for a counter of the program, which chooses its name and the keys of its values.
inline bool is_counter(std::string_view line) {
  return begins(line, "{\"cat\":\"COUNTER\",");
}
// True for both: the name says nothing about what kind of line it is.
inline bool is_named_by_program(std::string_view line) {
  return is_range(line) || is_counter(line);
}
// The writer puts the phase next, so most ranges need no further look.
inline bool is_closed_range(std::string_view line) {
  return begins(line, "{\"cat\":\"NVTX\",\"ph\":\"X\",");
}
// True for a call's device time, which has a line of its own.
inline bool is_device_time(std::string_view line) {
  return begins(line, "{\"cat\":\"DEVICE\",");
}
// True for an interval in which a device computed.
inline bool is_busy(std::string_view line) {
  return begins(line, "{\"cat\":\"BUSY\",");
}
// True for a call of a communicator's life, which moves no data.
inline bool is_life(std::string_view line) {
  return begins(line, "{\"cat\":\"COMM\",");
}
// True for what merge adds for viewers: arrows, lanes of steps and exposed time, rates. Nobody else
// reads them, and another merge writes its own.
inline bool is_of_merge(std::string_view line) {
  return begins(line, "{\"cat\":\"FLOW\",") || begins(line, "{\"cat\":\"LANE\",");
}
// True for another tool's line in a merged trace.
inline bool is_other(std::string_view line) {
  return begins(line, "{\"cat\":\"OTHER,");
}
inline bool begins_as_a_line(std::string_view line) {
  return begins(line, "{\"name\":\"") || is_named_by_program(line) || is_device_time(line) ||
         is_busy(line) || is_life(line) || is_of_merge(line) || is_other(line);
}

// What says which schema a file is of, who wrote it, and where its times begin. Throws Malformed.
void check_schema(const Fields& args);
void fill_origin(const Fields& args, Header& header);
void fill(const Fields& row, RowKey& key);

// Takes the metadata lines of one file in their order. A merged trace holds many processes: each
// begins with its header.
class MetadataParser {
 public:
  explicit MetadataParser(std::filesystem::path file) : file_(std::move(file)) {}

  // Throws BadInput with the line's offset.
  void line(const Line& line);

  std::vector<Process>& processes() { return processes_; }
  bool merged() const { return merged_; }

 private:
  void dispatch(const Line& line);

  std::filesystem::path file_;
  simdjson::dom::parser parser_;
  std::vector<Process> processes_;
  bool merged_ = false;
};

}  // namespace tprof::read
