// ncclGroupStart/End: the calls that a thread has made and not launched yet.
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

// Making a communicator takes several ranks, and one thread may make many of them in a group. So
// each step is done for all of them before the next one, which may wait for the others' step.
struct Setup {
  CommRef known;  // the communicator that shows the progress (in a split, the parent), or null
  bool blocking = true;
  std::vector<std::function<ncclResult_t()>> steps;
};

void group_start();
ncclResult_t group_end();
ncclResult_t group_simulate_end();

ncclResult_t add_call(Call call);
ncclResult_t add_setup(Setup setup);
// Reports a failed call, which makes its group fail as well.
ncclResult_t fail_call(ncclResult_t result);

}  // namespace standin
