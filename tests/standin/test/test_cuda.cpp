// Streams, copies and captures of the runtime, as no client looks at them.
#include <cuda.h>

#include <mutex>
#include <numeric>
#include <vector>

#include "test/catch.h"
#include "test/gate.h"

namespace {

cudaStream_t made(unsigned flags = cudaStreamNonBlocking) {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, flags) == cudaSuccess);
  return stream;
}

std::vector<unsigned char> counting(size_t size) {
  std::vector<unsigned char> bytes(size);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(1));
  return bytes;
}

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

TEST_CASE("the legacy stream waits for blocking streams and not for non-blocking ones") {
  const cudaStream_t blocking = made(cudaStreamDefault), free = made();
  Gate free_gate(free);
  {
    Gate gate(blocking);
    REQUIRE(cudaStreamQuery(nullptr) == cudaErrorNotReady);
  }
  REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
  REQUIRE(cudaStreamQuery(free) == cudaErrorNotReady);
}

TEST_CASE("a blocking stream waits for the legacy stream") {
  const cudaStream_t blocking = made(cudaStreamDefault);
  Log log;
  Gate gate(nullptr);
  log.add(nullptr, 1);
  log.add(blocking, 2);
  gate.open();
  REQUIRE(cudaStreamSynchronize(blocking) == cudaSuccess);
  REQUIRE(log.order == std::vector{1, 2});
}

TEST_CASE("elapsed time is between the events and needs timing events that are done") {
  const cudaStream_t stream = made();
  cudaEvent_t start = nullptr, end = nullptr, untimed = nullptr;
  REQUIRE(cudaEventCreate(&start) == cudaSuccess);
  REQUIRE(cudaEventCreate(&end) == cudaSuccess);
  REQUIRE(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming) == cudaSuccess);
  float milliseconds = -1;
  Gate gate(stream);
  cudaEventRecord(start, stream);
  cudaEventRecord(end, stream);
  cudaEventRecord(untimed, stream);
  REQUIRE(cudaEventElapsedTime(&milliseconds, start, end) == cudaErrorNotReady);
  gate.open();
  REQUIRE(cudaEventSynchronize(end) == cudaSuccess);
  REQUIRE(cudaEventElapsedTime(&milliseconds, start, end) == cudaSuccess);
  REQUIRE(milliseconds >= 0);
  REQUIRE(cudaEventElapsedTime(&milliseconds, start, untimed) == cudaErrorInvalidResourceHandle);
  REQUIRE(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  REQUIRE(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("a destroyed stream finishes its work") {
  Log log;
  cudaEvent_t event = nullptr;
  REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  Gate gate(stream);
  log.add(stream, 1);
  cudaEventRecord(event, stream);
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
  REQUIRE(cudaStreamQuery(stream) == cudaErrorInvalidResourceHandle);
  gate.open();
  REQUIRE(cudaEventSynchronize(event) == cudaSuccess);
  REQUIRE(log.order == std::vector{1});
}

TEST_CASE("an asynchronous copy happens in stream order, from pageable memory as it was") {
  const cudaStream_t stream = made();
  void* device = nullptr;
  REQUIRE(cudaMalloc(&device, sizeof(int)) == cudaSuccess);
  int pageable = 7;
  Gate gate(stream);
  REQUIRE(cudaMemcpyAsync(device, &pageable, sizeof pageable, cudaMemcpyHostToDevice, stream) ==
          cudaSuccess);
  pageable = 8;
  REQUIRE(*static_cast<int*>(device) == 0);
  gate.open();
  REQUIRE(cudaMemcpyAsync(&pageable, device, sizeof pageable, cudaMemcpyDeviceToHost, stream) ==
          cudaSuccess);
  REQUIRE(pageable == 7);  // a copy to pageable memory returns when it is done
  cudaFree(device);
}

TEST_CASE("a 3-D copy moves the box between positions") {
  auto from = counting(4 * 3 * 2);
  std::vector<unsigned char> to(6 * 4 * 2, 0xee);
  cudaMemcpy3DParms p = {};
  p.srcPtr = {from.data(), 4, 4, 3};
  p.dstPtr = {to.data(), 6, 6, 4};
  p.srcPos = {1, 1, 0};
  p.dstPos = {2, 1, 0};
  p.extent = {3, 2, 2};
  p.kind = cudaMemcpyHostToHost;
  REQUIRE(cudaMemcpy3D(&p) == cudaSuccess);
  for (size_t z = 0; z < 2; ++z) {
    for (size_t y = 0; y < 4; ++y) {
      for (size_t x = 0; x < 6; ++x) {
        const bool inside = x >= 2 && x < 5 && y >= 1 && y < 3;
        const size_t source = z * 12 + y * 4 + (x - 1);
        REQUIRE(to[z * 24 + y * 6 + x] == (inside ? from[source] : 0xee));
      }
    }
  }
}

TEST_CASE("a context exists from the first call that needs one") {
  unsigned flags = 0;
  int active = -1;
  constexpr int kUnused = 5;
  REQUIRE(cuDevicePrimaryCtxGetState(kUnused, &flags, &active) == CUDA_SUCCESS);
  REQUIRE(active == 0);
  REQUIRE(cudaSetDevice(kUnused) == cudaSuccess);
  REQUIRE(cuDevicePrimaryCtxGetState(kUnused, &flags, &active) == CUDA_SUCCESS);
  REQUIRE(active == 1);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}

TEST_CASE("a driver function is found in the meaning of the version that asks") {
  void *older = nullptr, *newer = nullptr;
  REQUIRE(cuGetProcAddress("cuStreamGetCaptureInfo", &older, 11030, 0, nullptr) == CUDA_SUCCESS);
  REQUIRE(cuGetProcAddress("cuStreamGetCaptureInfo", &newer, 12030, 0, nullptr) == CUDA_SUCCESS);
  REQUIRE(older != newer);
  REQUIRE(newer == reinterpret_cast<void*>(&cuStreamGetCaptureInfo));
  REQUIRE(cuGetProcAddress("cuNoSuchFunction", &older, 13000, 0, nullptr) == CUDA_ERROR_NOT_FOUND);
}

TEST_CASE("an allocation is allowed beside a capture only in relaxed mode") {
  void *memory = nullptr, *refused = nullptr;
  const cudaStream_t stream = made();
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  REQUIRE(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
  REQUIRE(cudaMalloc(&memory, 16) == cudaSuccess);
  REQUIRE(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
  REQUIRE(cudaMalloc(&refused, 16) == cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
}
