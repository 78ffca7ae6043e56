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
  // `fd`: the file, -1 where there is to be none.
  Snapshot(int fd, std::uint64_t base_real_ns);

  // Whether it is time for one: calls were made or begun and the last is 10 s old; a call has stood
  // for a second, so that a reader may take it for a hang; or nothing changed for 10 s, 20 s, 40 s,
  // then a minute each, and the process lives.
  bool due(const View& view, std::uint64_t now_ns);
  // `text` follows the first `cut` bytes of the rank file. What can't be written is left out, and
  // the one before stands.
  void write(std::string_view text, std::uint64_t cut);

  // Anew at this path, where it was removed with its rank file or there was none: the ring file,
  // beside that, is gone too.
  void bring_back(const char* path);
  // The rank file is closed. The one that was there from the start is removed by who made it.
  void end() const;

 private:
  OwnFile file_;
  char again_[1300] = {};  // where it was brought back to
  SnapshotEntry entry_{};  // in force
  std::uint64_t written_ns_;
  std::uint64_t every_ns_;      // while nothing changes
  std::uint64_t changes_ = 0;   // as of then
  std::uint64_t stood_ns_ = 0;  // start of the latest call that has stood
};

}  // namespace tprof
