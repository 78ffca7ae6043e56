// Calls each collective and each signal of newer.h three times; prints the sum of the arguments
// that arrived.
#include <cstdio>

#include "newer.h"

int main() {
  ncclUniqueId id;
  ncclComm_t comm;
  ncclGetUniqueId(&id);
  ncclCommInitRank(&comm, 2, id, 0);
  char data[64];
  const auto* config = reinterpret_cast<const ncclCollConfig_t*>(1000);
  const auto stream = reinterpret_cast<cudaStream_t>(100'000);
  for (int i = 0; i < 3; ++i) {
    ncclAllGatherConfig(data, data, 5, ncclFloat32, comm, stream, config);
    ncclReduceConfig(data, data, 6, ncclInt8, ncclMax, 1, comm, stream, config);
    ncclPutSignal(data, 7, ncclFloat64, 1, nullptr, 1, 2, 3, 4, comm, stream);
    ncclSignal(1, 2, 3, 4, comm, stream);
    ncclWaitSignalDesc_t wanted{1, 1, 2, 3};
    ncclWaitSignal(1, &wanted, comm, stream);
  }
  std::printf("%llu\n", last_arguments());
}
