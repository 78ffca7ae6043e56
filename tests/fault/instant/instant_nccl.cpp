// An NCCL of one rank whose calls return at once: they use no memory, file or thread, so that a
// test can take those away from the tracer alone.
#include <nccl.h>

#include <cstring>

struct ncclComm {
  int rank = 0;
};

namespace {

thread_local int depth = 0;
thread_local ncclResult_t group_result = ncclSuccess;

// As NCCL: a refused call in a group makes the group fail.
ncclResult_t answer(int root = 0) {
  if (root == 0) return ncclSuccess;
  if (depth != 0) group_result = ncclInvalidArgument;
  return ncclInvalidArgument;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static unsigned char last = 0;
  std::memset(id, ++last, sizeof *id);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int, ncclUniqueId, int) {
  *comm = new ncclComm;
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclAllGather(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t) {
  return answer();
}
ncclResult_t ncclReduceScatter(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                               cudaStream_t) {
  return answer();
}
ncclResult_t ncclAllReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                           cudaStream_t) {
  return answer();
}
ncclResult_t ncclBroadcast(const void*, void*, size_t, ncclDataType_t, int root, ncclComm_t,
                           cudaStream_t) {
  return answer(root);
}
ncclResult_t ncclSend(const void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t) {
  return answer();
}
ncclResult_t ncclRecv(void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t) {
  return answer();
}

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (--depth != 0) return ncclSuccess;
  const ncclResult_t result = group_result;
  group_result = ncclSuccess;
  return result;
}

}  // extern "C"
