#pragma once

#include "interpose/base/clock.h"
#include "interpose/format/ring_file.h"
#include "interpose/session/process.h"
#include "interpose/session/rank_file.h"

namespace tprof {

// Fills the head of a ring file that was just made. Its magic is the last: a reader who finds that
// finds the rest.
void fill_head(Head& head, const Process& process, const RankFile& file, const ClockAnchor& anchor);

}  // namespace tprof
