// Turns metadata lines (tprof_header, tprof_comm, tprof_ledger, ...) into processes.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include "read/json.h"
#include "read/lines.h"
#include "read/process.h"

namespace tprof::read {

// Compares texts with short literals; done several times for each line.
inline std::uint64_t word_at(const char* at) {
  std::uint64_t eight = 0;
  std::memcpy(&eight, at, 8);
  return eight;
}

template <std::size_t N>
bool equal(const char* a, const char* b) {
  if constexpr (N >= 8) {
    return word_at(a) == word_at(b) && equal<N - 8>(a + 8, b + 8);
  } else {
    return std::memcmp(a, b, N) == 0;
  }
}

template <std::size_t N>
bool begins(std::string_view text, const char (&literal)[N]) {
  return text.size() >= N - 1 && equal<N - 1>(text.data(), literal);
}

// Recognises a line by its beginning, as the writer orders the fields.
template <std::size_t N>
struct Start {
  char text[N];
  bool operator()(std::string_view line) const { return begins(line, text); }
};

// NVTX ranges, scopes and counters. The program chooses their names, which may be any text, and the
// keys of a counter's values.
inline constexpr Start is_range{"{\"cat\":\"NVTX\","};
inline constexpr Start is_counter{"{\"cat\":\"COUNTER\","};
inline constexpr Start is_device_time{"{\"cat\":\"DEVICE\","};  // of a call
inline constexpr Start is_busy{"{\"cat\":\"BUSY\","};           // a device computed
inline constexpr Start is_life{"{\"cat\":\"COMM\","};  // a call that creates or ends a communicator
inline constexpr Start is_other{"{\"cat\":\"OTHER,"};  // another tool's line in a merged trace

// A name that begins with an escape may also be one.
inline bool is_metadata(std::string_view line) {
  return begins(line, "{\"name\":\"tprof_") || line.starts_with("{\"name\":\"\\");
}
// The names of these lines are arbitrary.
inline bool is_named_by_program(std::string_view line) {
  return is_range(line) || is_counter(line);
}
// True for lines that merge adds for viewers: arrows, lanes of steps and exposed time, rates. No
// command reads them, and another merge writes new ones.
inline bool is_of_merge(std::string_view line) {
  return begins(line, "{\"cat\":\"FLOW\",") || begins(line, "{\"cat\":\"LANE\",");
}

// fill_origin reads who wrote a file, where and when. Both throw Malformed.
void fill_origin(const Fields& args, Header& header);
void fill(const Fields& row, RowKey& key);

// Takes the metadata lines of one file in order. In a merged trace each process begins with its
// header.
class MetadataParser {
 public:
  // `merged`: the first line said that this is a merged trace.
  explicit MetadataParser(std::filesystem::path file, bool merged = false)
      : file_(std::move(file)), merged_(merged) {}

  // Ignores other lines. Throws BadInput with the line's offset, also if the line is no JSON.
  void line(const Line& line);

  std::vector<Process>& processes() { return processes_; }
  bool merged() const { return merged_; }

 private:
  void dispatch(const Line& line);

  std::filesystem::path file_;
  simdjson::dom::parser parser_;
  std::vector<Process> processes_;
  bool merged_;
  text::Kept only_{};
};

}  // namespace tprof::read
