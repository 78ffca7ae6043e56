#pragma once

#include "interpose/base/clock.h"
#include "interpose/base/text.h"
#include "interpose/format/ring_file.h"
#include "interpose/session/mapping.h"
#include "interpose/session/process.h"
#include "interpose/session/rank_file.h"

namespace tprof {

// Fills the head of a ring file that was just made, but for its magic.
void fill_head(Head& head, const Process& process, const RankFile& file, const ClockAnchor& anchor);

// Puts the first lines of the rank file into the mapping, so that whoever finds the ring file alone
// can make the rank file. The magic is the last: a reader who finds that finds the rest.
bool write_header(Mapping& mapping, const Text& header);

}  // namespace tprof
