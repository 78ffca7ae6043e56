// A window's file without its rank file.
#pragma once

#include "read/load.h"

namespace tprof::read {

// It has lines and no counts: its ledger and its footer become those of its lines.
void count_lines_of_window(Trace& trace);

}  // namespace tprof::read
