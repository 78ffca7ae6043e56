// The part of ALLGATHER that moves pickled objects instead of tensors.
#pragma once

#include <optional>
#include <vector>

#include "read/load.h"

namespace tprof::stats {

// torch.distributed.all_gather_object gathers one int64 (the size), then bytes: a one-element int64
// ncclAllGather directly followed on the same communicator by a uint8 one. Both calls are counted.
// Seen in event lines only: reads them all, once. By process; nothing where lines are missing.
std::vector<std::optional<read::Amounts>> object_gathers(const read::Trace& trace);

}  // namespace tprof::stats
