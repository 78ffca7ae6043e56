#pragma once

#include "interpose/base/text.h"
#include "interpose/format/view.h"
#include "interpose/session/config.h"
#include "interpose/session/process.h"
#include "interpose/session/rank_file.h"

namespace tprof {

// Writes what the header says of NCCL, CUDA and the device. It asks the loader and these libraries,
// all of which may be waiting for a thread that waits for a lock of ours. So call it without one.
void loaded_libraries(Text& out);

// Writes the first lines of a rank file: "[", the names for viewers, tprof_header. `libraries`:
// what loaded_libraries() wrote.
void header_lines(Text& out, const View& view, const Config& config, const Process& process,
                  const RankFile& file, std::uint64_t bracket_ns, std::string_view libraries);

}  // namespace tprof
