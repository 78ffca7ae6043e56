// One thread's calls: every kind of them, in an order of its own, each counted around the call.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdio>
#include <cstdlib>

#include "counts.h"

namespace fault {

inline constexpr std::size_t kAmount[] = {
#define X(name, function, dtype, amount) amount,
    FAULT_CALLS(X)
#undef X
};

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "fault_client: %s failed\n", what);
  std::_Exit(99);
}

inline constexpr std::size_t kBytes = 16384;  // the largest message
inline char* device_buffer() {
  void* memory = nullptr;
  if (cudaMalloc(&memory, kBytes) != cudaSuccess) fail("cudaMalloc");
  return static_cast<char*>(memory);
}

inline ncclComm_t new_communicator() {
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  if (ncclGetUniqueId(&id) != ncclSuccess || ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess) {
    fail("ncclCommInitRank");
  }
  return comm;
}

// One thread's part: its communicator, its memory, its counts.
class Caller {
 public:
  // The same seed makes the same calls.
  Caller(ncclComm_t comm, std::uint64_t seed)
      : comm_(comm),
        from_(device_buffer()),
        to_(device_buffer()),
        counts_(thread_counts()),
        random_(seed) {}

  void round(unsigned kind) {
    switch (kind % 9) {
      case 0:
        return one(all_gather, [&](std::size_t n) {
          return ncclAllGather(from_, to_, n, ncclFloat32, comm_, nullptr);
        });
      case 1:
        return one(reduce_scatter, [&](std::size_t n) {
          return ncclReduceScatter(from_, to_, n, ncclBfloat16, ncclSum, comm_, nullptr);
        });
      case 2:
        return reduce();
      case 3:
        one(broadcast, [&](std::size_t n) {
          return ncclBroadcast(from_, to_, n, ncclUint8, 0, comm_, nullptr);
        });
        return one(refused, [&](std::size_t n) {
          return ncclBroadcast(from_, to_, n, ncclInt8, 5, comm_, nullptr);
        });
      case 4:
        return group();
      case 5:
        return lost_group();
      case 6:
        return one(h2d, [&](std::size_t n) {
          return cudaMemcpyAsync(to_, host_, n, cudaMemcpyHostToDevice, nullptr);
        });
      case 7:
        return one(d2h, [&](std::size_t n) {
          return cudaMemcpy(host_, from_, n, cudaMemcpyDeviceToHost);
        });
      default:
        return one(d2d, [&](std::size_t n) {
          return cudaMemcpyAsync(to_, from_, n, cudaMemcpyDeviceToDevice, nullptr);
        });
    }
  }

  // Makes every kind once, then random ones: the order differs between threads.
  void rounds(std::uint64_t n) {
    for (; n != 0; --n, ++rounds_) {
      random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
      round(static_cast<unsigned>(rounds_ < 9 ? rounds_ : random_ >> 33));
    }
  }

  void reduce() {
    one(all_reduce, [&](std::size_t n) {
      return ncclAllReduce(from_, to_, n, ncclInt64, ncclMax, comm_, nullptr);
    });
  }

  // Opens a group of four calls, within which another one begins and ends.
  void open_group() {
    ncclGroupStart();
    issue(grouped_gather,
          [&](std::size_t n) { return ncclAllGather(from_, to_, n, ncclInt32, comm_, nullptr); });
    ncclGroupStart();
    issue(grouped_scatter, [&](std::size_t n) {
      return ncclReduceScatter(from_, to_, n, ncclFloat64, ncclSum, comm_, nullptr);
    });
    ncclGroupEnd();
    issue(grouped_send,
          [&](std::size_t n) { return ncclSend(from_, n, ncclUint8, 0, comm_, nullptr); });
    issue(grouped_recv,
          [&](std::size_t n) { return ncclRecv(to_, n, ncclUint8, 0, comm_, nullptr); });
  }

  std::uint64_t returned() const {
    std::uint64_t sum = 0;
    for (const Counts& c : counts_.call) sum += c.returned;
    return sum;
  }

 private:
  template <typename F>
  bool issue(Call call, F&& f) {
    counts_.call[call].entered.fetch_add(1);
    return static_cast<int>(f(kAmount[call])) == 0;
  }
  void ended(Call call, bool ok) {
    (ok ? counts_.call[call].returned : counts_.call[call].failed).fetch_add(1);
  }
  template <typename F>
  void one(Call call, F&& f) {
    ended(call, issue(call, f));
  }

  void group() {
    open_group();
    const bool ok = ncclGroupEnd() == ncclSuccess;
    for (const Call call : {grouped_gather, grouped_scatter, grouped_send, grouped_recv}) {
      ended(call, ok);
    }
  }

  // Makes a group with a refused call: none of its calls is executed.
  void lost_group() {
    ncclGroupStart();
    issue(lost_reduce, [&](std::size_t n) {
      return ncclAllReduce(from_, to_, n, ncclUint32, ncclSum, comm_, nullptr);
    });
    issue(lost_broadcast, [&](std::size_t n) {
      return ncclBroadcast(from_, to_, n, ncclUint64, 5, comm_, nullptr);
    });
    const bool ok = ncclGroupEnd() == ncclSuccess;
    ended(lost_reduce, ok);
    ended(lost_broadcast, ok);
  }

  ncclComm_t comm_;
  char* from_;
  char* to_;
  char host_[kBytes] = {};
  ThreadCounts& counts_;
  std::uint64_t rounds_ = 0;
  std::uint64_t random_;
};

}  // namespace fault
