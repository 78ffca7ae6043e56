// Making communicators: splits, shrinking, non-blocking ones, several ranks in a process.
#include <thread>

#include "test/catch.h"
#include "test/ranks.h"

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

TEST_CASE("one process holds several ranks: one thread in a group") {
  REQUIRE(all_good(run_ranks(1, [](int, ncclUniqueId) {
    ncclComm_t comms[3];
    cudaStream_t streams[3];
    int* data[3];
    EXPECT(ncclCommInitAll(comms, 3, nullptr) == ncclSuccess);
    for (int r = 0; r < 3; ++r) {
      EXPECT(cudaSetDevice(r) == cudaSuccess);
      EXPECT(cudaStreamCreate(&streams[r]) == cudaSuccess);
      data[r] = filled(r, 100);
    }
    EXPECT(ncclGroupStart() == ncclSuccess);
    for (int r = 0; r < 3; ++r) {
      EXPECT(ncclAllReduce(data[r], data[r], 100, ncclInt32, ncclSum, comms[r], streams[r]) ==
             ncclSuccess);
    }
    EXPECT(ncclGroupEnd() == ncclSuccess);
    for (int r = 0; r < 3; ++r) {
      EXPECT(cudaStreamSynchronize(streams[r]) == cudaSuccess);
      for (size_t i = 0; i < 100; ++i) {
        EXPECT(data[r][i] == value(0, i) + value(1, i) + value(2, i));
      }
    }
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

TEST_CASE("one process holds several ranks: a thread each") {
  REQUIRE(all_good(run_ranks(1, [](int, ncclUniqueId id) {
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int rank = 0; rank < 4; ++rank) {
      threads.emplace_back([rank, id] {
        const Rank r(rank, 4, id);
        int* data = filled(rank, 100);
        EXPECT(ncclAllReduce(data, data, 100, ncclInt32, ncclMax, r.comm, r.stream) == ncclSuccess);
        r.wait();
        for (size_t i = 0; i < 100; ++i) EXPECT(data[i] == value(3, i));
      });
    }
    for (std::thread& thread : threads) thread.join();
  })));
}
