// One id for a communicator that its ranks know by two.
#pragma once

#include <vector>

#include "read/load.h"

namespace tprof::read {

// ncclCommGrow: ranks of the parent name the new communicator after it, ranks that are new after
// the unique id that they got, and the root says that both are one. All get the parent's, and so do
// the children made of it since.
void join_ids(std::vector<Trace>& traces);

}  // namespace tprof::read
