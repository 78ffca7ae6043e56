// A window's file without its rank file.
#pragma once

#include "read/load.h"

namespace tprof::read {

// Such a file has lines but no counts. Makes its ledger and footer from its lines.
void count_lines_of_window(Trace& trace);

}  // namespace tprof::read
