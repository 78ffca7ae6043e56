// Two ranks become three, all three are split off once more, and then they become four.
//
//   newer_nccl_grow RANK    0: the root, 1: there from the start, 2: new, 3: newer
#include <cstdlib>

#include "newer.h"

namespace {

// ncclCommGrow as `me` calls it: with the parent, the unique id, or both.
ncclComm_t grow(ncclComm_t parent, int nranks, int me, char generation) {
  ncclUniqueId id;
  ncclCommGetUniqueId(parent, &id);
  id.internal[1] = generation;
  ncclComm_t grown = nullptr;
  const bool tells = me == 0 || parent == nullptr;
  ncclCommGrow(parent, nranks, tells ? &id : nullptr, parent == nullptr ? me : -1, &grown, nullptr);
  return grown;
}

void reduce(ncclComm_t comm, int times) {
  char data[64];
  for (int i = 0; i < times; ++i) {
    ncclAllReduce(data, data, 4, ncclFloat32, ncclSum, comm, nullptr);
  }
}

}  // namespace

int main(int, char** argv) {
  const int me = std::atoi(argv[1]);
  ncclComm_t comm = nullptr;
  if (me < 2) {
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    ncclCommInitRank(&comm, 2, id, me);
    reduce(comm, 1);
  }
  ncclComm_t split = nullptr;
  if (me < 3) {
    comm = grow(comm, 3, me, 1);
    reduce(comm, 2);
    ncclCommRevoke(comm, 0);
    ncclCommSplit(comm, 0, me, &split, nullptr);
    reduce(split, 3);
  }
  comm = grow(split, 4, me, 2);
  reduce(comm, 4);
}
