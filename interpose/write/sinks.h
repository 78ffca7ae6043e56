// The list of the writer's sinks. Each takes its turn in this order.
#pragma once

#include <tuple>

#include "interpose/write/ended_epochs.h"
#include "interpose/write/ledgers.h"
#include "interpose/write/memory_sink.h"
#include "interpose/write/metrics_sink.h"
#include "interpose/write/rank_file_name.h"
#include "interpose/write/snapshot.h"

namespace tprof {

using Sinks = std::tuple<EndedEpochs,   // what `tprof ctl reset` and programs have ended
                         RankFileName,  // before the snapshot, which follows a file to its name
                         Snapshot, MetricsSink, MemorySink, Ledgers>;

}  // namespace tprof
