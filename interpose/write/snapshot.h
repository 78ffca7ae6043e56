// A sink: writes the file of format/snapshot.h, which says what recovery would add to the rank file
// if the process died now.
#pragma once

#include <cstdint>
#include <string_view>

#include "interpose/base/disk_space.h"
#include "interpose/format/snapshot.h"
#include "interpose/write/line_batch.h"
#include "interpose/write/sink.h"

namespace tprof {

class Snapshot : public Sink {
 public:
  void begin(LineBatch& lines, const SinkStart& start);
  void tick(LineBatch& lines, const ClockAnchor& now);
  // Removes a file that bring_back() made. The original file is removed by whoever made it.
  void closed() const;

 private:
  // True if a snapshot is due. Calls were made or begun and the last snapshot is 10 s old. Or a
  // call has stood for a second, so that a reader may take it for a hang. Or nothing changed for 10
  // s, 20 s, 40 s, then a minute each, and the process lives.
  bool due(const View& view, std::uint64_t now_ns);
  // Makes the file if it was removed with its rank file, or if there was none. The ring file, which
  // lay beside the rank file, is then gone too.
  void bring_back(const Head& head);
  // Writes a snapshot: `text` follows the first `cut` bytes of the rank file. If it can't be
  // written, the previous one stays in force.
  void write(std::string_view text, std::uint64_t cut, const Head& head);

  OwnFile file_;
  char again_[1300] = {};  // where it was brought back to
  SnapshotEntry entry_{};  // the entry in force
  std::uint64_t written_ns_ = 0;
  std::uint64_t every_ns_ = 0;            // while nothing changes
  std::uint64_t changes_ = 0;             // changes_in() at the last snapshot
  std::uint64_t stood_ns_ = 0;            // start of the latest call that has stood
  std::uint32_t times_brought_back_ = 0;  // the rank file, so far
};

}  // namespace tprof
