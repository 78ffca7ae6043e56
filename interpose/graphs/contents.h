// Keeps what launches execute in the mapped file. Its rows are there before the first launch, which
// then only adds one to a counter. Graphs that execute the same share one entry, so that a program
// that captures or updates a graph in every step does not fill the file.
#pragma once

#include <span>

#include "interpose/graphs/graphs.h"

namespace tprof::graph_contents {

// Numbers executables in the order in which they were made. An update does not change the number.
using Life = std::uint64_t;

// Returns the entry of an executable that executes `calls`, which names the entry of their content.
// 0: there is no room for one. The caller holds a lock.
std::uint32_t entry_of(Thread& t, Life executable, std::span<const graphs::Call> calls);
// Returns the executable whose entry this is. 0: not known.
Life life_of(std::uint32_t entry);

void forget_all();

}  // namespace tprof::graph_contents
