// ncclGroupStart/End: what a thread has asked for and not launched yet.
#pragma once

#include <functional>

#include "engine/tally.h"
#include "nccl/communicator.h"

namespace standin {

// A call that moves data. Outside of a group it is a group of its own.
struct Call {
  CommRef comm;
  StreamRef stream;
  Task task;
  tally::Key key;
  tally::Row* row;
  uint64_t count, bytes;
  bool hang_device;
};

// Making communicators takes several ranks. One thread may hold many of them in a group, so each
// step is done for all before the next one, which may wait for what the others did in this one.
struct Setup {
  CommRef known;  // the communicator whose state tells how it goes (a split: the parent), or null
  bool blocking = true;
  std::vector<std::function<ncclResult_t()>> steps;
};

void group_start();
ncclResult_t group_end();
ncclResult_t group_simulate_end();

ncclResult_t add_call(Call call);
ncclResult_t add_setup(Setup setup);
// A call that failed: its group then fails as well.
ncclResult_t fail_call(ncclResult_t result);

}  // namespace standin
