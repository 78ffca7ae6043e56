// NCCL between processes: compares the data that every rank gets with plain loops.
#include "test/catch.h"
#include "test/ranks.h"

namespace {

// The largest count exceeds a window, so that its data goes in several pieces.
constexpr size_t kCounts[] = {0, 1, 1000, 300'001};

}  // namespace

TEST_CASE("ncclAllGather puts every rank's data in rank order, also in place") {
  REQUIRE(all_good(run_ranks(4, [](int rank, ncclUniqueId id) {
    const Rank r(rank, 4, id);
    for (size_t count : kCounts) {
      int* recv = buffer(4 * count);
      int* send = recv + static_cast<size_t>(rank) * count;
      for (size_t i = 0; i < count; ++i) send[i] = value(rank, i);
      EXPECT(ncclAllGather(send, recv, count, ncclInt32, r.comm, r.stream) == ncclSuccess);
      r.wait();
      for (int from = 0; from < 4; ++from) {
        for (size_t i = 0; i < count; ++i) {
          EXPECT(recv[static_cast<size_t>(from) * count + i] == value(from, i));
        }
      }
    }
  })));
}

TEST_CASE("ncclReduceScatter and ncclAllReduce sum over the ranks") {
  REQUIRE(all_good(run_ranks(4, [](int rank, ncclUniqueId id) {
    const Rank r(rank, 4, id);
    const auto sum = [](size_t i) { return value(0, i) + value(1, i) + value(2, i) + value(3, i); };
    for (size_t count : kCounts) {
      int *send = filled(rank, 4 * count), *shard = buffer(count);
      EXPECT(ncclReduceScatter(send, shard, count, ncclInt32, ncclSum, r.comm, r.stream) ==
             ncclSuccess);
      EXPECT(ncclAllReduce(send, send, count, ncclInt32, ncclSum, r.comm, r.stream) == ncclSuccess);
      r.wait();
      for (size_t i = 0; i < count; ++i) {
        EXPECT(shard[i] == sum(static_cast<size_t>(rank) * count + i));
        EXPECT(send[i] == sum(i));
      }
    }
  })));
}

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

TEST_CASE("a user reduction multiplies each rank's data before the sum") {
  REQUIRE(all_good(run_ranks(2, [](int rank, ncclUniqueId id) {
    const Rank r(rank, 2, id);
    int factor = 3 + rank;
    ncclRedOp_t op;
    EXPECT(ncclRedOpCreatePreMulSum(&op, &factor, ncclInt32, ncclScalarHostImmediate, r.comm) ==
           ncclSuccess);
    int* data = filled(rank, 10);
    EXPECT(ncclAllReduce(data, data, 10, ncclInt32, op, r.comm, r.stream) == ncclSuccess);
    EXPECT(ncclRedOpDestroy(op, r.comm) == ncclSuccess);
    r.wait();
    for (size_t i = 0; i < 10; ++i) EXPECT(data[i] == 3 * value(0, i) + 4 * value(1, i));
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

TEST_CASE("one communicator keeps its order over two streams") {
  REQUIRE(all_good(run_ranks(2, [](int rank, ncclUniqueId id) {
    const Rank r(rank, 2, id);
    cudaStream_t other = nullptr;
    EXPECT(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking) == cudaSuccess);
    int *a = filled(rank, 10), *b = filled(rank, 10);
    for (int i = 0; i < 50; ++i) {
      EXPECT(ncclAllReduce(a, a, 10, ncclInt32, ncclMax, r.comm, r.stream) == ncclSuccess);
      EXPECT(ncclBcast(b, 10, ncclInt32, i % 2, r.comm, other) == ncclSuccess);
    }
    r.wait();
    EXPECT(cudaStreamSynchronize(other) == cudaSuccess);
    for (size_t i = 0; i < 10; ++i) EXPECT(a[i] == value(1, i) && b[i] == value(0, i));
  })));
}

TEST_CASE("a captured collective runs with every launch of its graph") {
  REQUIRE(all_good(run_ranks(2, [](int rank, ncclUniqueId id) {
    const Rank r(rank, 2, id);
    int* data = filled(rank, 10);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    EXPECT(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
    EXPECT(ncclAllReduce(data, data, 10, ncclInt32, ncclSum, r.comm, r.stream) == ncclSuccess);
    EXPECT(cudaStreamEndCapture(r.stream, &graph) == cudaSuccess);
    EXPECT(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
    r.wait();
    EXPECT(data[3] == value(rank, 3));
    for (int i = 0; i < 3; ++i) EXPECT(cudaGraphLaunch(exec, r.stream) == cudaSuccess);
    r.wait();
    EXPECT(data[3] == 4 * (value(0, 3) + value(1, 3)));  // the sum, then doubled twice
  })));
}
