// Calls that are refused, and ranks that die, hang or are slow.
#include <sys/resource.h>
#include <sys/syscall.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "test/catch.h"
#include "test/ranks.h"

namespace {

int threads_in(long syscall_number) {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "syscall");
    long number = -1;  // stays -1 for a running thread
    file >> number;
    count += number == syscall_number;
  }
  return count;
}

double cpu_seconds() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

}  // namespace

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

TEST_CASE("the nth call fails with the code that was asked for") {
  REQUIRE(all_good(run_ranks(1, [](int rank, ncclUniqueId id) {
    setenv("STANDIN_FAIL", "0:ncclBroadcast:2:3,0:cudaMemcpy:1:700", 1);
    const Rank r(rank, 1, id);
    int* data = filled(0, 1);
    EXPECT(ncclBroadcast(data, data, 1, ncclInt32, 0, r.comm, r.stream) == ncclSuccess);
    EXPECT(ncclBroadcast(data, data, 1, ncclInt32, 0, r.comm, r.stream) == ncclInternalError);
    EXPECT(ncclBroadcast(data, data, 1, ncclInt32, 0, r.comm, r.stream) == ncclSuccess);
    EXPECT(cudaMemcpy(data, data, 1, cudaMemcpyDeviceToDevice) == cudaErrorIllegalAddress);
    EXPECT(cudaMemcpy(data, data, 1, cudaMemcpyDeviceToDevice) == cudaSuccess);
  })));
}

TEST_CASE("a call that hangs never returns, and one that hangs on the device does") {
  REQUIRE(all_good(run_ranks(1, [](int rank, ncclUniqueId id) {
    setenv("STANDIN_HANG", "0:ncclBroadcast:2", 1);
    setenv("STANDIN_HANG_DEVICE", "0:ncclAllReduce:1", 1);
    const Rank r(rank, 1, id);
    int* data = filled(0, 1);
    EXPECT(ncclBroadcast(data, data, 1, ncclInt32, 0, r.comm, r.stream) == ncclSuccess);
    r.wait();
    EXPECT(ncclAllReduce(data, data, 1, ncclInt32, ncclSum, r.comm, r.stream) == ncclSuccess);
    std::atomic<bool> returned = false;
    std::thread([&] {
      ncclBroadcast(data, data, 1, ncclInt32, 0, r.comm, r.stream);
      returned = true;
    }).detach();
    // Both hang in pause(2), which nothing ends.
    while (threads_in(SYS_pause) < 2) std::this_thread::yield();
    EXPECT(!returned);
    EXPECT(cudaStreamQuery(r.stream) == cudaErrorNotReady);
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
