// Makes calls of which no two are alike: more kinds than the ledger of a thread has rows.
#include "caller.h"
#include "modes.h"

namespace fault {

// One call of each function, data type and size on each communicator of 3 ranks, then copies.
int keys(int comms) {
  char* const data = device_buffer();
  static char host[kBytes];
  for (int n = 0; n < comms; ++n) {
    ncclUniqueId id;
    ncclComm_t comm = nullptr;
    if (ncclGetUniqueId(&id) != ncclSuccess || ncclCommInitRank(&comm, 3, id, 1) != ncclSuccess) {
      fail("ncclCommInitRank");
    }
    for (int type = 0; type < 12; ++type) {
      const auto dtype = static_cast<ncclDataType_t>(type);
      for (std::size_t count = 1; count <= 512; count *= 2) {
        ncclAllGather(data, data, count, dtype, comm, nullptr);
        ncclReduceScatter(data, data, count, dtype, ncclSum, comm, nullptr);
        ncclAllReduce(data, data, count, dtype, ncclSum, comm, nullptr);
        ncclBroadcast(data, data, count, dtype, 0, comm, nullptr);
      }
    }
    ncclGroupStart();
    ncclSend(data, 8, ncclFloat32, 0, comm, nullptr);
    ncclRecv(data, 8, ncclFloat32, 0, comm, nullptr);
    ncclGroupEnd();
  }
  for (std::size_t bytes = 1; bytes <= kBytes; bytes *= 2) {
    cudaMemcpyAsync(data, host, bytes, cudaMemcpyHostToDevice, nullptr);
    cudaMemcpyAsync(host, data, bytes, cudaMemcpyDeviceToHost, nullptr);
  }
  return 7;
}

}  // namespace fault
