// What launches execute, in the mapped file: its rows are there before the first launch, which then
// only adds one to a counter. Graphs that execute the same share one entry, so that a program that
// captures or changes a graph in every step does not fill the file.
#pragma once

#include <cstdint>

#include "interpose/capture/thread.h"
#include "interpose/graphs/model.h"

namespace tprof::graph_contents {

// The entry of `executable`. 0: there is no room for one. `unseen`: of it (GraphUnseen).
// Its owner holds a lock.
std::uint32_t entry_of(Thread& t, GraphModel& model, GraphId executable, std::uint32_t& unseen);

void forget_all();

}  // namespace tprof::graph_contents
