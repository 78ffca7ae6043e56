// What a process that did not close left in its ring file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "read/process.h"

namespace tprof::read {

struct Replay {
  std::uint64_t cut = 0;  // bytes of the rank file that the lines below follow
  std::string lines;      // as the writer would have written them: events, ledger, footer
  bool partial = false;   // some of its counts were in memory that is gone
  bool running = false;   // the process lives: no call that is still open is in the lines
};

// Nothing where there is no such file, or it is another process's. Throws BadInput for one that is
// not of this version.
std::optional<Replay> replay(const std::filesystem::path& ring, const Header& owner);

}  // namespace tprof::read
