// Streams, events and callbacks: the order of work, and what waits for what.
#include <atomic>
#include <mutex>
#include <vector>

#include "test/catch.h"
#include "test/gate.h"

namespace {

struct Stream {
  cudaStream_t handle = nullptr;
  explicit Stream(unsigned flags = cudaStreamNonBlocking) {
    REQUIRE(cudaStreamCreateWithFlags(&handle, flags) == cudaSuccess);
  }
  ~Stream() { cudaStreamDestroy(handle); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
};

struct Event {
  cudaEvent_t handle = nullptr;
  explicit Event(unsigned flags = cudaEventDefault) {
    REQUIRE(cudaEventCreateWithFlags(&handle, flags) == cudaSuccess);
  }
  ~Event() { cudaEventDestroy(handle); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
};

// Notes the order in which streams reach its entries.
struct Log {
  std::mutex mutex;
  std::vector<int> order;

  struct Entry {
    Log* log;
    int number;
  };
  void add(cudaStream_t stream, int number) {
    REQUIRE(cudaLaunchHostFunc(
                stream,
                [](void* data) {
                  const std::unique_ptr<Entry> entry(static_cast<Entry*>(data));
                  const std::lock_guard lock(entry->log->mutex);
                  entry->log->order.push_back(entry->number);
                },
                new Entry{this, number}) == cudaSuccess);
  }
};

}  // namespace

TEST_CASE("a launch returns at once and synchronising waits for the work") {
  Stream stream;
  Gate gate(stream.handle);
  REQUIRE(cudaStreamQuery(stream.handle) == cudaErrorNotReady);
  gate.open();
  REQUIRE(cudaStreamSynchronize(stream.handle) == cudaSuccess);
  REQUIRE(cudaStreamQuery(stream.handle) == cudaSuccess);
}

TEST_CASE("work of one stream runs in order") {
  Stream stream;
  Log log;
  for (int i = 0; i < 100; ++i) log.add(stream.handle, i);
  REQUIRE(cudaStreamSynchronize(stream.handle) == cudaSuccess);
  REQUIRE(log.order.size() == 100);
  REQUIRE(std::is_sorted(log.order.begin(), log.order.end()));
}

TEST_CASE("a stream that waits for an event runs after what the event followed") {
  Stream first, second;
  Event event(cudaEventDisableTiming);
  Log log;
  Gate gate(first.handle);
  log.add(first.handle, 1);
  REQUIRE(cudaEventRecord(event.handle, first.handle) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(second.handle, event.handle, 0) == cudaSuccess);
  log.add(second.handle, 2);
  REQUIRE(cudaEventQuery(event.handle) == cudaErrorNotReady);
  gate.open();
  REQUIRE(cudaStreamSynchronize(second.handle) == cudaSuccess);
  REQUIRE(cudaEventQuery(event.handle) == cudaSuccess);
  REQUIRE(log.order == std::vector{1, 2});
}

TEST_CASE("streams without an event between them do not wait for each other") {
  Stream first, second;
  Gate gate(first.handle);
  REQUIRE(cudaStreamSynchronize(second.handle) == cudaSuccess);
  REQUIRE(cudaStreamQuery(first.handle) == cudaErrorNotReady);
}

TEST_CASE("the legacy stream waits for blocking streams and not for non-blocking ones") {
  Stream blocking(cudaStreamDefault), free;
  Gate free_gate(free.handle);
  {
    Gate gate(blocking.handle);
    REQUIRE(cudaStreamQuery(nullptr) == cudaErrorNotReady);
  }
  REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
  REQUIRE(cudaStreamQuery(free.handle) == cudaErrorNotReady);
}

TEST_CASE("a blocking stream waits for the legacy stream") {
  Stream blocking(cudaStreamDefault);
  Log log;
  Gate gate(nullptr);
  log.add(nullptr, 1);
  log.add(blocking.handle, 2);
  gate.open();
  REQUIRE(cudaStreamSynchronize(blocking.handle) == cudaSuccess);
  REQUIRE(log.order == std::vector{1, 2});
}

TEST_CASE("the device waits for all its streams") {
  Stream first, second;
  Log log;
  log.add(first.handle, 1);
  log.add(second.handle, 2);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  REQUIRE(log.order.size() == 2);
}

TEST_CASE("elapsed time is between the events and needs timing events that are done") {
  Stream stream;
  Event start, end, untimed(cudaEventDisableTiming);
  float milliseconds = -1;
  Gate gate(stream.handle);
  cudaEventRecord(start.handle, stream.handle);
  cudaEventRecord(end.handle, stream.handle);
  cudaEventRecord(untimed.handle, stream.handle);
  REQUIRE(cudaEventElapsedTime(&milliseconds, start.handle, end.handle) == cudaErrorNotReady);
  gate.open();
  REQUIRE(cudaEventSynchronize(end.handle) == cudaSuccess);
  REQUIRE(cudaEventElapsedTime(&milliseconds, start.handle, end.handle) == cudaSuccess);
  REQUIRE(milliseconds >= 0);
  REQUIRE(cudaEventElapsedTime(&milliseconds, start.handle, untimed.handle) ==
          cudaErrorInvalidResourceHandle);
  REQUIRE(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  REQUIRE(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("a destroyed stream finishes its work") {
  Log log;
  Event event(cudaEventDisableTiming);
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  Gate gate(stream);
  log.add(stream, 1);
  cudaEventRecord(event.handle, stream);
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
  REQUIRE(cudaStreamQuery(stream) == cudaErrorInvalidResourceHandle);
  gate.open();
  REQUIRE(cudaEventSynchronize(event.handle) == cudaSuccess);
  REQUIRE(log.order == std::vector{1});
}

TEST_CASE("an asynchronous copy happens in stream order, from pageable memory as it was") {
  Stream stream;
  void* device = nullptr;
  REQUIRE(cudaMalloc(&device, sizeof(int)) == cudaSuccess);
  int pageable = 7;
  Gate gate(stream.handle);
  REQUIRE(cudaMemcpyAsync(device, &pageable, sizeof pageable, cudaMemcpyHostToDevice,
                          stream.handle) == cudaSuccess);
  pageable = 8;
  REQUIRE(*static_cast<int*>(device) == 0);
  gate.open();
  REQUIRE(cudaMemcpyAsync(&pageable, device, sizeof pageable, cudaMemcpyDeviceToHost,
                          stream.handle) == cudaSuccess);
  REQUIRE(pageable == 7);  // a copy to pageable memory returns when it is done
  cudaFree(device);
}
