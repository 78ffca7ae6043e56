// Makes every kind of copy of the CUDA runtime: boxes, arrays of several formats, batches and
// prefetches. Each function is also called by its per-thread twin, refused, and captured where that
// can be. Where data did not arrive, it prints the failed check and ends.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "per_thread_copies.h"

namespace {

using Bytes = std::vector<unsigned char>;

void check(bool right, const char* what, int line) {
  if (right) return;
  std::printf("line %d: %s\n", line, what);
  std::exit(1);
}
#define OK(call) check((call) == cudaSuccess, #call, __LINE__)
#define REFUSED(call) check((call) != cudaSuccess, #call, __LINE__)
#define SAME(a, b) check((a) == (b), #a " == " #b, __LINE__)

cudaStream_t stream;

Bytes counting(size_t size) {
  Bytes bytes(size);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(1));
  return bytes;
}

void* device(size_t size) {
  void* memory = nullptr;
  OK(cudaMalloc(&memory, size));
  return memory;
}

cudaMemcpy3DParms box(void* dst, const Bytes& src, cudaExtent extent) {
  cudaMemcpy3DParms p{};
  p.srcPtr = {const_cast<unsigned char*>(src.data()), extent.width, extent.width, extent.height};
  p.dstPtr = {dst, extent.width, extent.width, extent.height};
  p.extent = extent;
  p.kind = cudaMemcpyHostToDevice;
  return p;
}

void boxes() {
  const Bytes sent = counting(7 * 5 * 3);
  void* there = device(sent.size());
  void* other = device(sent.size());
  const cudaExtent all = {7, 5, 3};
  cudaMemcpy3DParms p = box(there, sent, all);
  OK(cudaMemcpy3D(&p));
  OK(cudaMemcpy3D_ptds(&p));
  OK(cudaMemcpy3DAsync(&p, stream));
  p.extent = {6, 4, 2};  // a part of it
  OK(cudaMemcpy3DAsync_ptsz(&p, stream));
  p.kind = cudaMemcpyDefault;
  OK(cudaMemcpy3D(&p));
  cudaMemcpy3DPeerParms peer{};
  peer.srcPtr = {there, 7, 7, 5};
  peer.dstPtr = {other, 7, 7, 5};
  peer.extent = all;
  OK(cudaMemcpy3DPeer(&peer));
  OK(cudaMemcpy3DPeer_ptds(&peer));
  OK(cudaMemcpy3DPeerAsync(&peer, stream));
  OK(cudaMemcpy3DPeerAsync_ptsz(&peer, stream));
  OK(cudaStreamSynchronize(stream));
  Bytes back(sent.size());
  OK(cudaMemcpy(back.data(), other, back.size(), cudaMemcpyDeviceToHost));
  SAME(back, sent);
  p.dstPtr.ptr = nullptr;
  p.kind = cudaMemcpyHostToDevice;
  REFUSED(cudaMemcpy3D(&p));
  REFUSED(cudaMemcpy3DAsync(&p, stream));
}

// Copies boxes of arrays, whose extents count elements of one or several bytes and channels.
void box_of(const cudaChannelFormatDesc& format, size_t element) {
  const cudaExtent extent = {4, 3, 2};
  const Bytes sent = counting(4 * 3 * 2 * element);
  cudaArray_t one = nullptr, two = nullptr;
  OK(cudaMalloc3DArray(&one, &format, extent, 0));
  OK(cudaMalloc3DArray(&two, &format, extent, 0));
  cudaMemcpy3DParms p{};
  p.srcPtr = {const_cast<unsigned char*>(sent.data()), 4 * element, 4, 3};
  p.dstArray = one;
  p.extent = extent;
  p.kind = cudaMemcpyHostToDevice;
  OK(cudaMemcpy3D(&p));
  OK(cudaMemcpy3DAsync(&p, stream));
  cudaMemcpy3DPeerParms peer{};
  peer.srcArray = one;
  peer.dstArray = two;
  peer.extent = extent;
  OK(cudaMemcpy3DPeerAsync(&peer, stream));
  OK(cudaStreamSynchronize(stream));
  Bytes back(sent.size());
  p = {};
  p.srcArray = two;
  p.dstPtr = {back.data(), 4 * element, 4, 3};
  p.extent = extent;
  p.kind = cudaMemcpyDefault;
  OK(cudaMemcpy3D(&p));
  SAME(back, sent);

  cudaMemcpy3DBatchOp operation[2] = {};
  operation[0].src.type = cudaMemcpyOperandTypeArray;
  operation[0].src.op.array = {two, {0, 0, 0}};
  operation[0].dst.type = cudaMemcpyOperandTypePointer;
  operation[0].dst.op.ptr = {back.data(), 0, 0, {}};
  operation[0].extent = extent;
  operation[0].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  operation[1] = operation[0];
  std::swap(operation[1].src, operation[1].dst);
  operation[1].dst.op.array.offset = {1, 1, 1};
  operation[1].extent = {3, 2, 1};
  back.assign(back.size(), 0);
  OK(cudaMemcpy3DBatchAsync(1, operation, 0, stream));
  OK(cudaStreamSynchronize(stream));
  SAME(back, sent);
  OK(cudaMemcpy3DBatchAsync_ptsz(2, operation, 0, stream));
  REFUSED(cudaMemcpy3DBatchAsync(2, operation, 0, nullptr));
  OK(cudaStreamSynchronize(stream));
  OK(cudaFreeArray(one));
  OK(cudaFreeArray(two));
}

void arrays() {
  const cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
  cudaArray_t one = nullptr, two = nullptr;
  OK(cudaMallocArray(&one, &format, 8, 4, 0));
  OK(cudaMallocArray(&two, &format, 8, 4, 0));
  const Bytes sent = counting(size_t{8} * 4 * 4);
  Bytes back(sent.size());
  constexpr auto kIn = cudaMemcpyHostToDevice;
  constexpr auto kOut = cudaMemcpyDeviceToHost;
  constexpr auto kWithin = cudaMemcpyDeviceToDevice;
  OK(cudaMemcpy2DToArray(one, 0, 0, sent.data(), 32, 32, 4, kIn));
  OK(cudaMemcpy2DToArray_ptds(one, 4, 1, sent.data() + 36, 32, 20, 2, kIn));
  OK(cudaMemcpy2DToArrayAsync(one, 0, 0, sent.data(), 32, 32, 3, kIn, stream));
  OK(cudaMemcpy2DToArrayAsync_ptsz(one, 0, 0, sent.data(), 32, 32, 2, cudaMemcpyDefault, stream));
  OK(cudaMemcpy2DArrayToArray(two, 0, 0, one, 0, 0, 32, 4, kWithin));
  OK(cudaMemcpy2DArrayToArray_ptds(two, 0, 0, one, 0, 0, 32, 2, cudaMemcpyDefault));
  OK(cudaMemcpy2DFromArray(back.data(), 32, two, 0, 0, 32, 4, kOut));
  SAME(back, sent);
  OK(cudaMemcpy2DFromArray_ptds(back.data(), 32, two, 0, 0, 32, 3, kOut));
  OK(cudaMemcpy2DFromArrayAsync(back.data(), 32, two, 0, 0, 32, 2, kOut, stream));
  OK(cudaMemcpy2DFromArrayAsync_ptsz(back.data(), 32, two, 0, 0, 32, 1, kOut, stream));
  const Bytes turned(sent.rbegin(), sent.rend());
  OK(cudaMemcpyToArray(one, 0, 0, turned.data(), turned.size(), kIn));
  OK(cudaMemcpyToArray_ptds(one, 0, 1, turned.data() + 32, 64, kIn));
  OK(cudaMemcpyToArrayAsync(one, 0, 0, turned.data(), 100, kIn, stream));
  OK(cudaMemcpyToArrayAsync_ptsz(one, 0, 0, turned.data(), 60, cudaMemcpyDefault, stream));
  OK(cudaMemcpyArrayToArray(two, 0, 0, one, 0, 0, turned.size(), kWithin));
  OK(cudaMemcpyArrayToArray_ptds(two, 0, 0, one, 0, 0, 40, kWithin));
  OK(cudaMemcpyFromArray(back.data(), two, 0, 0, back.size(), kOut));
  SAME(back, turned);
  OK(cudaMemcpyFromArray_ptds(back.data(), two, 0, 0, 16, kOut));
  OK(cudaMemcpyFromArrayAsync(back.data(), two, 0, 0, 8, kOut, stream));
  OK(cudaMemcpyFromArrayAsync_ptsz(back.data(), two, 0, 0, 4, kOut, stream));
  OK(cudaStreamSynchronize(stream));
  REFUSED(cudaMemcpy2DToArray(one, 0, 0, sent.data(), 1, 32, 4, kIn));
}

// Copies from and to each kind of host memory: pinned, managed, and the program's own, before,
// while and after it is registered. One block is pinned by the driver, where no wrapper sees it.
void host_sides(void* driver) {
  void* there = device(64);
  const auto copies = [there](void* host) {
    OK(cudaMemcpyAsync(there, host, 64, cudaMemcpyHostToDevice, stream));
    OK(cudaMemcpyAsync(host, there, 48, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(there, static_cast<char*>(host) + 32, 32, cudaMemcpyDefault));
  };
  void* pinned = nullptr;
  void* managed = nullptr;
  void* past = nullptr;
  OK(cudaMallocHost(&pinned, 64));
  OK(cudaMallocManaged(&managed, 64, cudaMemAttachGlobal));
  const auto allocate =
      reinterpret_cast<int (*)(void**, size_t, unsigned)>(dlsym(driver, "cuMemHostAlloc"));
  check(allocate != nullptr && allocate(&past, 64, 0) == 0, "cuMemHostAlloc", __LINE__);
  Bytes own(64);
  for (void* host : {pinned, past, static_cast<void*>(own.data())}) copies(host);
  OK(cudaMemcpy(there, managed, 64, cudaMemcpyHostToDevice));
  OK(cudaHostRegister(own.data(), own.size(), cudaHostRegisterDefault));
  copies(own.data());
  OK(cudaHostUnregister(own.data()));
  copies(own.data());
  OK(cudaFreeHost(pinned));
  REFUSED(cudaMemcpy(nullptr, own.data(), 64, cudaMemcpyHostToDevice));
}

// Makes one call with copies in every direction.
void batches() {
  Bytes sent = counting(1000);
  Bytes back(1000);
  auto* there = static_cast<unsigned char*>(device(3000));
  void* pinned = nullptr;
  void* managed = nullptr;
  OK(cudaHostAlloc(&pinned, 1000, cudaHostAllocDefault));
  OK(cudaMallocManaged(&managed, 1000, cudaMemAttachGlobal));
  void* to[] = {there, there + 100, there + 1000, back.data(), managed, pinned};
  const void* from[] = {sent.data(), pinned, there + 2000, there + 2500, sent.data(), sent.data()};
  const size_t sizes[] = {100, 200, 300, 400, 500, 600};
  cudaMemcpyAttributes attributes = {cudaMemcpySrcAccessOrderStream, {}, {}, 0};
  size_t first = 0;
  OK(cudaMemcpyBatchAsync(to, from, sizes, 6, &attributes, &first, 1, stream));
  OK(cudaMemcpyBatchAsync_ptsz(to, from, sizes, 1, &attributes, &first, 1, nullptr));
  OK(cudaMemcpyBatchAsync(to, from, sizes, 2, &attributes, &first, 1, stream));
  REFUSED(cudaMemcpyBatchAsync(to, from, sizes, 6, &attributes, &first, 1, nullptr));
  OK(cudaDeviceSynchronize());
  Bytes arrived(100);
  OK(cudaMemcpy(arrived.data(), there, 100, cudaMemcpyDeviceToHost));
  SAME(arrived, Bytes(sent.begin(), sent.begin() + 100));

  cudaMemLocation host = {cudaMemLocationTypeHost, 0};
  OK(cudaMemPrefetchAsync(managed, 1000, host, 0, stream));
  OK(cudaMemPrefetchAsync_ptsz(managed, 500, host, 0, stream));
  REFUSED(cudaMemPrefetchAsync(sent.data(), 1000, host, 0, stream));
  void* parts[] = {managed, static_cast<char*>(managed) + 500};
  size_t lengths[] = {300, 200};
  OK(cudaMemPrefetchBatchAsync(parts, lengths, 2, &host, &first, 1, 0, stream));
  // An empty batch has no first copy to take a direction from.
  REFUSED(cudaMemcpyBatchAsync(to, from, sizes, 0, &attributes, &first, 1, stream));
  REFUSED(cudaMemPrefetchBatchAsync(parts, lengths, 0, &host, &first, 1, 0, stream));
  OK(cudaMemPrefetchBatchAsync_ptsz(parts, lengths, 1, &host, &first, 1, 0, stream));
  OK(cudaMemDiscardAndPrefetchBatchAsync(parts, lengths, 2, &host, &first, 1, 0, stream));
  OK(cudaMemDiscardAndPrefetchBatchAsync_ptsz(parts, lengths, 1, &host, &first, 1, 0, stream));
}

// Captures copies that can be captured, and launches the graph three times.
void captured() {
  const cudaChannelFormatDesc format = {16, 16, 0, 0, cudaChannelFormatKindFloat};
  cudaArray_t array = nullptr;
  OK(cudaMallocArray(&array, &format, 8, 4, 0));
  void* pinned = nullptr;
  OK(cudaHostAlloc(&pinned, 256, cudaHostAllocDefault));
  void* there = device(256);
  cudaMemcpy3DParms p{};
  p.srcPtr = {pinned, 32, 32, 4};
  p.dstArray = array;
  p.extent = {8, 4, 1};
  p.kind = cudaMemcpyHostToDevice;
  cudaMemcpy3DPeerParms peer{};
  peer.srcPtr = {there, 16, 16, 4};
  peer.dstPtr = {static_cast<char*>(there) + 128, 16, 16, 4};
  peer.extent = {16, 4, 2};
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  OK(cudaMemcpy3DAsync(&p, stream));
  OK(cudaMemcpy3DPeerAsync(&peer, stream));
  OK(cudaMemcpy2DToArrayAsync(array, 0, 0, pinned, 32, 32, 4, cudaMemcpyHostToDevice, stream));
  OK(cudaMemcpy2DFromArrayAsync(pinned, 32, array, 0, 0, 32, 4, cudaMemcpyDeviceToHost, stream));
  OK(cudaMemcpyToArrayAsync(array, 0, 0, pinned, 128, cudaMemcpyHostToDevice, stream));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 3; ++i) OK(cudaGraphLaunch(executable, stream));
  OK(cudaStreamSynchronize(stream));
}

}  // namespace

int main(int argc, char** argv) {
  // Loads the driver as NVIDIA's runtime does at its first call.
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  check(driver != nullptr, "no driver", __LINE__);
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  if (argc > 1 && std::strcmp(argv[1], "planes") == 0) {
    // YUV 4:2:0: the format does not tell how large an element is.
    box_of({8, 8, 8, 0, cudaChannelFormatKindNV12}, 3);
    return 0;
  }
  boxes();
  box_of({8, 0, 0, 0, cudaChannelFormatKindUnsigned}, 1);
  box_of({16, 0, 0, 0, cudaChannelFormatKindFloat}, 2);
  box_of({16, 16, 0, 0, cudaChannelFormatKindSigned}, 4);
  box_of({32, 32, 32, 32, cudaChannelFormatKindFloat}, 16);
  arrays();
  batches();
  host_sides(driver);
  captured();
}
