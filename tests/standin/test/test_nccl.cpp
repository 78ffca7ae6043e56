// NCCL between processes, as no client looks at it: data, communicators, and ranks that do not
// come.
#include <sys/resource.h>

#include <thread>

#include "test/catch.h"
#include "test/ranks.h"

namespace {

// The largest count exceeds a window, so that its data goes in several pieces.
constexpr size_t kCounts[] = {0, 1, 1000, 300'001};

double cpu_seconds() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

}  // namespace

TEST_CASE("broadcast, reduce, gather, scatter and all-to-all reach the right ranks") {
  REQUIRE(all_good(run_ranks(3, [](int rank, ncclUniqueId id) {
    const Rank r(rank, 3, id);
    constexpr int kRoot = 1;
    for (size_t count : kCounts) {
      int *send = filled(rank, 3 * count), *recv = buffer(3 * count), *cast = filled(rank, count);
      EXPECT(ncclBcast(cast, count, ncclInt32, kRoot, r.comm, r.stream) == ncclSuccess);
      EXPECT(ncclAlltoAll(send, recv, count, ncclInt32, r.comm, r.stream) == ncclSuccess);
      r.wait();
      for (size_t i = 0; i < count; ++i) {
        EXPECT(cast[i] == value(kRoot, i));
        for (int from = 0; from < 3; ++from) {
          EXPECT(recv[static_cast<size_t>(from) * count + i] ==
                 value(from, static_cast<size_t>(rank) * count + i));
        }
      }
      std::fill_n(recv, 3 * count, -1);
      EXPECT(ncclGather(send, recv, count, ncclInt32, kRoot, r.comm, r.stream) == ncclSuccess);
      r.wait();
      for (size_t i = 0; i < 3 * count; ++i) {
        const int expected = rank == kRoot ? value(static_cast<int>(i / count), i % count) : -1;
        EXPECT(recv[i] == expected);
      }
      EXPECT(ncclScatter(send, recv, count, ncclInt32, kRoot, r.comm, r.stream) == ncclSuccess);
      r.wait();
      for (size_t i = 0; i < count; ++i) {
        EXPECT(recv[i] == value(kRoot, static_cast<size_t>(rank) * count + i));
      }
      std::fill_n(recv, count, -1);
      EXPECT(ncclReduce(send, recv, count, ncclInt32, ncclMax, kRoot, r.comm, r.stream) ==
             ncclSuccess);
      r.wait();
      for (size_t i = 0; i < count; ++i) EXPECT(recv[i] == (rank == kRoot ? value(2, i) : -1));
    }
  })));
}

TEST_CASE("grouped sends and receives of all ranks go on at once, in order per peer") {
  REQUIRE(all_good(run_ranks(4, [](int rank, ncclUniqueId id) {
    const Rank r(rank, 4, id);
    constexpr size_t kCount = 100'000;  // several mailboxes full
    int *send = filled(rank, kCount), *recv = buffer(8 * kCount);
    EXPECT(ncclGroupStart() == ncclSuccess);
    for (int peer = 0; peer < 4; ++peer) {
      EXPECT(ncclSend(send, kCount, ncclInt32, peer, r.comm, r.stream) == ncclSuccess);
      EXPECT(ncclGroupStart() == ncclSuccess);
      EXPECT(ncclSend(&send[1], 1, ncclInt32, peer, r.comm, r.stream) == ncclSuccess);
      EXPECT(ncclGroupEnd() == ncclSuccess);
      int* into = recv + 2 * kCount * static_cast<size_t>(peer);
      EXPECT(ncclRecv(into, kCount, ncclInt32, peer, r.comm, r.stream) == ncclSuccess);
      EXPECT(ncclRecv(into + kCount, 1, ncclInt32, peer, r.comm, r.stream) == ncclSuccess);
    }
    EXPECT(ncclGroupEnd() == ncclSuccess);
    r.wait();
    for (int peer = 0; peer < 4; ++peer) {
      const int* from = recv + 2 * kCount * static_cast<size_t>(peer);
      for (size_t i = 0; i < kCount; ++i) EXPECT(from[i] == value(peer, i));
      EXPECT(from[kCount] == value(peer, 1));
    }
  })));
}

TEST_CASE("a split orders its ranks by key, and no colour gives no communicator") {
  REQUIRE(all_good(run_ranks(4, [](int rank, ncclUniqueId id) {
    const Rank r(rank, 4, id);
    ncclComm_t pair = nullptr, again = nullptr, none = r.comm;
    EXPECT(ncclCommSplit(r.comm, rank % 2, -rank, &pair, nullptr) == ncclSuccess);
    EXPECT(ncclCommSplit(r.comm, rank % 2, rank, &again, nullptr) == ncclSuccess);
    const int colour = rank == 0 ? NCCL_SPLIT_NOCOLOR : 7;
    EXPECT(ncclCommSplit(r.comm, colour, 0, &none, nullptr) == ncclSuccess);
    int count = 0, mine = -1;
    EXPECT(ncclCommCount(pair, &count) == ncclSuccess && count == 2);
    EXPECT(ncclCommUserRank(pair, &mine) == ncclSuccess && mine == (rank < 2 ? 1 : 0));
    EXPECT(ncclCommUserRank(again, &mine) == ncclSuccess && mine == (rank < 2 ? 0 : 1));
    EXPECT((none == nullptr) == (rank == 0));
    int* data = filled(rank, 5);
    EXPECT(ncclAllReduce(data, data, 5, ncclInt32, ncclSum, pair, r.stream) == ncclSuccess);
    r.wait();
    for (size_t i = 0; i < 5; ++i) {
      EXPECT(data[i] == value(rank % 2, i) + value(rank % 2 + 2, i));
    }
    if (rank != 0) EXPECT(ncclCommDestroy(none) == ncclSuccess);
    EXPECT(ncclCommFinalize(pair) == ncclSuccess && ncclCommDestroy(pair) == ncclSuccess);
  })));
}

TEST_CASE("a shrunk communicator leaves the excluded ranks out and keeps the order of the others") {
  REQUIRE(all_good(run_ranks(3, [](int rank, ncclUniqueId id) {
    ncclComm_t all = nullptr, rest = nullptr;
    EXPECT(cudaSetDevice(rank) == cudaSuccess);
    EXPECT(ncclCommInitRankScalable(&all, 3, rank, 1, &id, nullptr) == ncclSuccess);
    if (rank == 1) return;
    int excluded[] = {1}, mine = -1;
    EXPECT(ncclCommShrink(all, excluded, 1, &rest, nullptr, NCCL_SHRINK_DEFAULT) == ncclSuccess);
    EXPECT(ncclCommUserRank(rest, &mine) == ncclSuccess && mine == rank / 2);
    int* data = filled(rank, 5);
    EXPECT(ncclAllReduce(data, data, 5, ncclInt32, ncclSum, rest, nullptr) == ncclSuccess);
    EXPECT(cudaStreamSynchronize(nullptr) == cudaSuccess);
    for (size_t i = 0; i < 5; ++i) EXPECT(data[i] == value(0, i) + value(2, i));
  })));
}

TEST_CASE("a non-blocking communicator is in progress until all ranks have come") {
  int came[2];
  REQUIRE(pipe(came) == 0);
  REQUIRE(all_good(run_ranks(2, [&](int rank, ncclUniqueId id) {
    EXPECT(cudaSetDevice(rank) == cudaSuccess);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    ncclResult_t state = ncclSuccess;
    char byte = 0;
    if (rank == 1) EXPECT(read(came[0], &byte, 1) == 1);
    EXPECT(ncclCommInitRankConfig(&comm, 2, id, rank, &config) == ncclInProgress);
    if (rank == 0) {
      int count = 0;
      EXPECT(ncclCommGetAsyncError(comm, &state) == ncclSuccess && state == ncclInProgress);
      EXPECT(ncclCommCount(comm, &count) == ncclInvalidArgument);
      EXPECT(write(came[1], &byte, 1) == 1);
    }
    do {
      EXPECT(ncclCommGetAsyncError(comm, &state) == ncclSuccess);
      std::this_thread::yield();
    } while (state == ncclInProgress);
    EXPECT(state == ncclSuccess);
    int* data = filled(rank, 5);
    const ncclResult_t result = ncclBcast(data, 5, ncclInt32, 0, comm, nullptr);
    EXPECT(result == ncclInProgress || result == ncclSuccess);
    EXPECT(cudaStreamSynchronize(nullptr) == cudaSuccess);
    EXPECT(data[4] == value(0, 4));
  })));
}

TEST_CASE("stream 0 of a call is that of the communicator's device, whichever is current") {
  REQUIRE(all_good(run_ranks(1, [](int, ncclUniqueId) {
    ncclComm_t comms[2];
    int* data[2];
    EXPECT(ncclCommInitAll(comms, 2, nullptr) == ncclSuccess);
    for (int r = 0; r < 2; ++r) data[r] = filled(r, 5);
    EXPECT(ncclGroupStart() == ncclSuccess);
    for (int r = 0; r < 2; ++r) {
      EXPECT(ncclAllReduce(data[r], data[r], 5, ncclInt32, ncclSum, comms[r], nullptr) ==
             ncclSuccess);
    }
    EXPECT(ncclGroupEnd() == ncclSuccess);
    for (int r = 0; r < 2; ++r) {
      EXPECT(cudaSetDevice(r) == cudaSuccess);
      EXPECT(cudaStreamSynchronize(nullptr) == cudaSuccess);
      for (size_t i = 0; i < 5; ++i) EXPECT(data[r][i] == value(0, i) + value(1, i));
    }
  })));
}

TEST_CASE("a call that NCCL refuses fails its group, and a simulated group does nothing") {
  REQUIRE(all_good(run_ranks(1, [](int rank, ncclUniqueId id) {
    const Rank r(rank, 1, id);
    int *data = filled(5, 10), *out = buffer(10);
    EXPECT(ncclGroupEnd() == ncclInvalidUsage);
    EXPECT(ncclAllReduce(data, out, 1, ncclInt32, ncclSum, nullptr, r.stream) ==
           ncclInvalidArgument);
    EXPECT(ncclGroupStart() == ncclSuccess);
    EXPECT(ncclAllReduce(data, out, 10, ncclInt32, ncclSum, r.comm, r.stream) == ncclSuccess);
    EXPECT(ncclBcast(data, 1, ncclInt32, 1, r.comm, r.stream) == ncclInvalidArgument);
    EXPECT(ncclGroupEnd() == ncclInvalidArgument);
    EXPECT(ncclGroupStart() == ncclSuccess);
    EXPECT(ncclAllReduce(data, out, 10, ncclInt32, ncclSum, r.comm, r.stream) == ncclSuccess);
    EXPECT(ncclGroupSimulateEnd(nullptr) == ncclSuccess);
    r.wait();
    EXPECT(out[3] == 0);
    EXPECT(ncclAllReduce(data, out, 10, ncclInt32, ncclSum, r.comm, r.stream) == ncclSuccess);
    r.wait();
    EXPECT(out[3] == value(5, 3));
  })));
}

TEST_CASE("ncclCommAbort ends work that waits for a rank that does not come") {
  int over[2];
  REQUIRE(pipe(over) == 0);
  REQUIRE(all_good(run_ranks(2, [&](int rank, ncclUniqueId id) {
    const Rank r(rank, 2, id);
    char byte = 0;
    if (rank == 1) {
      EXPECT(read(over[0], &byte, 1) == 1);
      return;
    }
    int* data = filled(0, 10);
    EXPECT(ncclAllReduce(data, data, 10, ncclInt32, ncclSum, r.comm, r.stream) == ncclSuccess);
    EXPECT(cudaStreamQuery(r.stream) == cudaErrorNotReady);
    EXPECT(ncclCommAbort(r.comm) == ncclSuccess);
    r.wait();
    EXPECT(write(over[1], &byte, 1) == 1);
  })));
}

TEST_CASE("a slow rank makes the others wait, on the device and not in the call") {
  REQUIRE(all_good(run_ranks(2, [](int rank, ncclUniqueId id) {
    setenv("STANDIN_LATENCY_US", "1000", 1);
    setenv("STANDIN_SLOW_RANK", "1:200", 1);
    const Rank r(rank, 2, id);
    int* data = filled(rank, 10);
    cudaEvent_t start = nullptr, end = nullptr;
    EXPECT(cudaEventCreate(&start) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess);
    EXPECT(cudaEventRecord(start, r.stream) == cudaSuccess);
    EXPECT(ncclAllReduce(data, data, 10, ncclInt32, ncclSum, r.comm, r.stream) == ncclSuccess);
    EXPECT(cudaStreamQuery(r.stream) == cudaErrorNotReady);
    EXPECT(cudaEventRecord(end, r.stream) == cudaSuccess);
    r.wait();
    float milliseconds = 0;
    EXPECT(cudaEventElapsedTime(&milliseconds, start, end) == cudaSuccess);
    // Rank 1 takes 200 ms of its own; rank 0 waits for it from wherever it started.
    if (rank == 1) EXPECT(milliseconds >= 200);
  })));
}

TEST_CASE("waiting for a rank sleeps") {
  REQUIRE(all_good(run_ranks(4, [](int rank, ncclUniqueId id) {
    setenv("STANDIN_LATENCY_US", "500000", 1);
    setenv("STANDIN_SLOW_RANK", "0:2", 1);
    const Rank r(rank, 4, id);
    int* data = filled(rank, 10);
    const double before = cpu_seconds();
    EXPECT(ncclAllReduce(data, data, 10, ncclInt32, ncclSum, r.comm, r.stream) == ncclSuccess);
    r.wait();
    EXPECT(cpu_seconds() - before < 0.1);  // seconds
  })));
}

TEST_CASE("a rank that dies ends in an error for the others, not in a hang") {
  const auto statuses = run_ranks(2, [](int rank, ncclUniqueId id) {
    setenv("STANDIN_DIE", "1:ncclAllReduce:2", 1);
    const Rank r(rank, 2, id);
    int* data = filled(rank, 10);
    for (int i = 0; i < 2; ++i) {
      EXPECT(ncclAllReduce(data, data, 10, ncclInt32, ncclSum, r.comm, r.stream) == ncclSuccess);
    }
    EXPECT(cudaStreamSynchronize(r.stream) == cudaErrorLaunchTimeout);
    ncclResult_t state = ncclSuccess;
    EXPECT(ncclCommGetAsyncError(r.comm, &state) == ncclSuccess && state == ncclRemoteError);
  });
  REQUIRE(statuses[0] == 0);
  REQUIRE(WIFSIGNALED(statuses[1]));
  REQUIRE(WTERMSIG(statuses[1]) == SIGKILL);
}
