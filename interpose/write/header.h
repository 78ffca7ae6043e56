#pragma once

#include "interpose/base/text.h"
#include "interpose/format/view.h"
#include "interpose/session/config.h"
#include "interpose/session/process.h"
#include "interpose/session/rank_file.h"

namespace tprof {

// Writes the header's part about NCCL, CUDA and the device. Call it without holding a lock of ours:
// it calls the loader and these libraries, which may wait for a thread that waits for our lock.
void loaded_libraries(Text& out);

// Writes the first lines of a rank file: "[", the names for viewers, tprof_header. `libraries`
// comes from loaded_libraries().
void header_lines(Text& out, const View& view, const Config& config, const Process& process,
                  const RankFile& file, std::uint64_t bracket_ns, std::string_view libraries);

}  // namespace tprof
