// The list of the writer's sinks. Each takes its turn in this order.
#pragma once

#include <tuple>

#include "interpose/write/ended_epochs.h"
#include "interpose/write/lanes.h"
#include "interpose/write/ledgers.h"
#include "interpose/write/rank_file_name.h"
#include "interpose/write/snapshot.h"
#include "interpose/write/whole_windows.h"

namespace tprof {

using Sinks = std::tuple<EndedEpochs,   // what `tprof ctl reset` and programs have ended
                         RankFileName,  // before the snapshot, which follows a file to its name
                         WholeWindows,  // before lanes, which may need a file's place
                         Snapshot, MetricsSink, MemorySink, Ledgers>;

}  // namespace tprof
