// Writes the file of format/snapshot.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "interpose/base/disk_space.h"
#include "interpose/format/snapshot.h"
#include "interpose/format/view.h"

namespace tprof {

class Snapshot {
 public:
  // `fd`: the file, or -1 for none.
  Snapshot(int fd, std::uint64_t base_real_ns);

  // True if a snapshot is due. Calls were made or begun and the last snapshot is 10 s old. Or a
  // call has stood for a second, so that a reader may take it for a hang. Or nothing changed for 10
  // s, 20 s, 40 s, then a minute each, and the process lives.
  bool due(const View& view, std::uint64_t now_ns);
  // Writes a snapshot: `text` follows the first `cut` bytes of the rank file. If it can't be
  // written, the previous one stays in force.
  void write(std::string_view text, std::uint64_t cut);

  // Makes the file at this path if it was removed with its rank file, or if there was none. The
  // ring file, which lay beside the rank file, is then gone too.
  void bring_back(const char* path);
  // Call this when the rank file is closed: removes a file that bring_back() made. The original
  // file is removed by whoever made it.
  void end() const;

 private:
  OwnFile file_;
  char again_[1300] = {};  // where it was brought back to
  SnapshotEntry entry_{};  // the entry in force
  std::uint64_t written_ns_;
  std::uint64_t every_ns_;      // while nothing changes
  std::uint64_t changes_ = 0;   // changes_in() at the last snapshot
  std::uint64_t stood_ns_ = 0;  // start of the latest call that has stood
};

}  // namespace tprof
