// What a process that did not close left in its ring file.
#pragma once

#include <cstdint>
#include <string>

#include "read/ring_file.h"

namespace tprof::read {

// The end that the rank file lacks. Reading an unclosed file, watching a running process and
// recovering a dead one all come through here.
struct Replay {
  std::uint64_t cut = 0;  // bytes of the rank file that the lines below follow
  std::string lines;      // as the writer would have written them: events, ledger, footer
  bool partial = false;   // some of its counts were in memory that is gone
  bool running = false;   // the process lives: calls that are open may still return
};

// Throws BadInput where no state was ever committed: the process died while it started.
Replay replay(const RingFile& ring);

}  // namespace tprof::read
