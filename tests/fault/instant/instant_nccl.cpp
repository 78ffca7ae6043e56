// An NCCL of one rank whose calls return at once. They use no memory, file or thread, so that a
// test can take those away from the tracer alone.
//
// INSTANT_GATE=N,M: the N-th and the M-th all-reduce print "inside" on standard output. They return
// when a byte comes on standard input, and never if that is at its end.
#include <nccl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "answers.h"

struct ncclComm {
  int rank = 0;
};

namespace {

thread_local int depth = 0;
thread_local ncclResult_t group_result = ncclSuccess;

// As in NCCL, a refused call in a group makes the group fail.
ncclResult_t answer(int root = 0) {
  if (root == 0) return ncclSuccess;
  if (depth != 0) group_result = ncclInvalidArgument;
  return ncclInvalidArgument;
}

void gate() {
  static const char* const list = std::getenv("INSTANT_GATE");
  if (list == nullptr) return;
  static std::atomic<long> calls{0};
  const long call = ++calls;
  bool listed = false;
  for (const char* at = list; *at != '\0'; at += *at == ',') {
    char* end = nullptr;
    listed |= std::strtol(at, &end, 10) == call;
    at = end;
  }
  if (!listed) return;
  constexpr char kInside[] = "inside\n";
  if (write(STDOUT_FILENO, kInside, sizeof kInside - 1) < 0) std::abort();
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) != 1) pause();
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
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return ncclCommDestroy(comm);
}

ANSWERS(answer(), ncclResult_t, ncclAllGather, const void*, void*, size_t, ncclDataType_t,
        ncclComm_t, cudaStream_t)
ANSWERS(answer(), ncclResult_t, ncclReduceScatter, const void*, void*, size_t, ncclDataType_t,
        ncclRedOp_t, ncclComm_t, cudaStream_t)
ncclResult_t ncclAllReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                           cudaStream_t) {
  gate();
  return answer();
}
ncclResult_t ncclBroadcast(const void*, void*, size_t, ncclDataType_t, int root, ncclComm_t,
                           cudaStream_t) {
  return answer(root);
}
ANSWERS(answer(), ncclResult_t, ncclSend, const void*, size_t, ncclDataType_t, int, ncclComm_t,
        cudaStream_t)
ANSWERS(answer(), ncclResult_t, ncclRecv, void*, size_t, ncclDataType_t, int, ncclComm_t,
        cudaStream_t)

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
