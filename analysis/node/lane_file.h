// The file of a node's lanes, HOST.node.json. It is created when there is something to write, and
// each reading is written at once, so that a kill leaves complete readings.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <string_view>

#include "interpose/base/clock.h"
#include "interpose/base/disk_space.h"
#include "interpose/base/text.h"
#include "interpose/format/counters.h"

namespace tprof::node {

struct Wanted {
  const char* folder;
  std::string_view run_id, host, boot_id;
  std::uint64_t every_ns;
  std::uint64_t most_bytes;  // 0: no limit
};

class LaneFile {
 public:
  explicit LaneFile(const Wanted& wanted)
      : wanted_(wanted), pid_(getpid()), base_(clock_anchor()) {}

  void add(const Counter& counter, std::uint64_t at_ns);
  // Writes what was added since the last call, if the limit allows it.
  void write();
  // Closes the array.
  void end();

 private:
  bool made();
  bool create();

  Wanted wanted_;
  std::int64_t pid_;
  ClockAnchor base_;
  OwnFile file_{};
  bool refused_ = false;  // the file could not be created
  std::uint64_t size_ = 0;
  Text text_;
};

}  // namespace tprof::node
