#pragma once

#include "interpose/format/text.h"
#include "interpose/format/view.h"
#include "interpose/session/config.h"
#include "interpose/session/process.h"
#include "rank_file.h"

namespace tprof {

// The first lines of a rank file: "[", the names for viewers, tprof_header.
void header_lines(Text& out, const View& view, const Config& config, const Process& process,
                  const RankFile& file, std::uint64_t bracket_ns);

}  // namespace tprof
