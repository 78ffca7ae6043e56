// Keeps what launches execute in the mapped file. Its rows are there before the first launch, which
// then only adds one to a counter. Graphs that execute the same share one entry, so that a program
// that captures or updates a graph in every step does not fill the file.
#pragma once

#include <span>

#include "interpose/record/graphs.h"

namespace tprof::graph_contents {

// Returns the entry of what executes `calls`: an entry of its own for a new executable, while there
// is room for these, which names that of its content. 0: there is no room. The caller holds a lock.
std::uint32_t entry_of(Thread& t, std::span<const graphs::Call> calls, bool new_executable);

void forget_all();

}  // namespace tprof::graph_contents
