// The list of the writer's sinks. Each takes its turn in this order.
#pragma once

#include <tuple>

#include "interpose/emit/ended_epochs.h"
#include "interpose/emit/lanes.h"
#include "interpose/emit/ledgers.h"
#include "interpose/emit/rank_file_name.h"
#include "interpose/emit/snapshot.h"
#include "interpose/emit/whole_windows.h"

namespace tprof {

using Sinks = std::tuple<EndedEpochs,   // what `tprof ctl reset` and programs have ended
                         RankFileName,  // before the snapshot, which follows a file to its name
                         WholeWindows,  // before lanes, which may need a file's place
                         Snapshot, MetricsSink, MemorySink, Ledgers>;

}  // namespace tprof
