// Counts that the client itself keeps around every call, in a mapped file that outlives a SIGKILL.
// They are the program's side of "entered >= traced >= returned". counted.py reads the file.
#pragma once

#include <atomic>
#include <cstdint>

namespace fault {

// One kind of call that the client makes: X(name, function, dtype, API count or bytes).
// Function and dtype together tell them apart in a trace.
#define FAULT_CALLS(X)                                \
  X(all_gather, ncclAllGather, float32, 1024)         \
  X(reduce_scatter, ncclReduceScatter, bfloat16, 512) \
  X(all_reduce, ncclAllReduce, int64, 256)            \
  X(broadcast, ncclBroadcast, uint8, 4096)            \
  X(refused, ncclBroadcast, int8, 16)                 \
  X(grouped_gather, ncclAllGather, int32, 128)        \
  X(grouped_scatter, ncclReduceScatter, float64, 64)  \
  X(grouped_send, ncclSend, uint8, 32)                \
  X(grouped_recv, ncclRecv, uint8, 32)                \
  X(lost_reduce, ncclAllReduce, uint32, 8)            \
  X(lost_broadcast, ncclBroadcast, uint64, 8)         \
  X(h2d, cudaMemcpyAsync, byte, 2048)                 \
  X(d2h, cudaMemcpy, byte, 1024)                      \
  X(d2d, cudaMemcpyAsync_d2d, byte, 512)

enum Call {
#define X(name, ...) name,
  FAULT_CALLS(X)
#undef X
      kCalls
};

struct Counts {
  std::atomic<std::uint64_t> entered, returned, failed;
};
struct ThreadCounts {
  std::uint64_t tid;
  Counts call[kCalls];
};

// Returns a place for the calling thread's counts; a forked child begins a file of its own.
ThreadCounts& thread_counts();

// Creates the file now, before limits are set that would prevent it.
void open_counts();

}  // namespace fault
