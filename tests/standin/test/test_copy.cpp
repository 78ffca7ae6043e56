// Memory kinds, pointer attributes and the shapes of copies.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "test/catch.h"

extern "C" void __cudaRegisterVar(void** module, char* host, char* device, const char* name,
                                  int external, size_t size, int constant, int global);

namespace {

struct Device {
  unsigned char* bytes = nullptr;
  explicit Device(size_t size) {
    void* memory = nullptr;
    REQUIRE(cudaMalloc(&memory, size) == cudaSuccess);
    bytes = static_cast<unsigned char*>(memory);
  }
  ~Device() { cudaFree(bytes); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
};

std::vector<unsigned char> counting(size_t size) {
  std::vector<unsigned char> bytes(size);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(1));
  return bytes;
}

cudaMemoryType type_of(const void* pointer) {
  cudaPointerAttributes attributes;
  REQUIRE(cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess);
  return attributes.type;
}

}  // namespace

TEST_CASE("a pointer's kind is known anywhere inside its allocation") {
  void *device = nullptr, *pinned = nullptr, *managed = nullptr;
  std::vector<char> plain(64), registered(64);
  REQUIRE(cudaMalloc(&device, 1000) == cudaSuccess);
  REQUIRE(cudaHostAlloc(&pinned, 1000, cudaHostAllocDefault) == cudaSuccess);
  REQUIRE(cudaMallocManaged(&managed, 1000, cudaMemAttachGlobal) == cudaSuccess);
  REQUIRE(cudaHostRegister(registered.data(), 64, 0) == cudaSuccess);
  REQUIRE(type_of(static_cast<char*>(device) + 999) == cudaMemoryTypeDevice);
  REQUIRE(type_of(static_cast<char*>(pinned) + 999) == cudaMemoryTypeHost);
  REQUIRE(type_of(static_cast<char*>(managed) + 999) == cudaMemoryTypeManaged);
  REQUIRE(type_of(registered.data() + 63) == cudaMemoryTypeHost);
  REQUIRE(type_of(plain.data()) == cudaMemoryTypeUnregistered);
  REQUIRE(cudaHostUnregister(registered.data()) == cudaSuccess);
  REQUIRE(type_of(registered.data()) == cudaMemoryTypeUnregistered);
  REQUIRE(cudaFree(device) == cudaSuccess);
  REQUIRE(type_of(device) == cudaMemoryTypeUnregistered);
  REQUIRE(cudaFree(pinned) == cudaErrorInvalidValue);
  REQUIRE(cudaFreeHost(pinned) == cudaSuccess);
  REQUIRE(cudaFree(managed) == cudaSuccess);
}

TEST_CASE("the driver says the same of a pointer as the runtime") {
  const Device device(16);
  unsigned type = 0;
  const auto address = reinterpret_cast<CUdeviceptr>(device.bytes);
  REQUIRE(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS);
  REQUIRE(type == CU_MEMORYTYPE_DEVICE);
  int plain = 0;
  REQUIRE(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                reinterpret_cast<CUdeviceptr>(&plain)) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a copy there and back returns what was sent, whichever way it is asked for") {
  const auto sent = counting(3000);
  const Device device(3000), other(3000);
  std::vector<unsigned char> back(3000);
  SECTION("kind given") {
    REQUIRE(cudaMemcpy(device.bytes, sent.data(), 3000, cudaMemcpyHostToDevice) == cudaSuccess);
    REQUIRE(cudaMemcpy(back.data(), device.bytes, 3000, cudaMemcpyDeviceToHost) == cudaSuccess);
  }
  SECTION("kind from the pointers") {
    REQUIRE(cudaMemcpy(device.bytes, sent.data(), 3000, cudaMemcpyDefault) == cudaSuccess);
    REQUIRE(cudaMemcpy(back.data(), device.bytes, 3000, cudaMemcpyDefault) == cudaSuccess);
  }
  SECTION("over a peer") {
    REQUIRE(cudaMemcpy(device.bytes, sent.data(), 3000, cudaMemcpyHostToDevice) == cudaSuccess);
    REQUIRE(cudaMemcpyPeer(other.bytes, 1, device.bytes, 0, 3000) == cudaSuccess);
    REQUIRE(cudaMemcpy(back.data(), other.bytes, 3000, cudaMemcpyDeviceToHost) == cudaSuccess);
  }
  SECTION("by the driver") {
    const auto address = reinterpret_cast<CUdeviceptr>(device.bytes);
    REQUIRE(cuMemcpyHtoD(address, sent.data(), 3000) == CUDA_SUCCESS);
    REQUIRE(cuMemcpyDtoH(back.data(), address, 3000) == CUDA_SUCCESS);
  }
  SECTION("as a batch") {
    cudaStream_t stream = nullptr;
    REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
    void* to[] = {device.bytes, device.bytes + 1000};
    const void* from[] = {sent.data(), sent.data() + 1000};
    const size_t sizes[] = {1000, 2000};
    REQUIRE(cudaMemcpyBatchAsync(to, from, sizes, 2, nullptr, nullptr, 0, stream) == cudaSuccess);
    REQUIRE(cudaMemcpyAsync(back.data(), device.bytes, 3000, cudaMemcpyDeviceToHost, stream) ==
            cudaSuccess);
    REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
  }
  REQUIRE(back == sent);
}

TEST_CASE("a 2-D copy moves the rectangle and leaves the rest of the pitch alone") {
  const auto sent = counting(5 * 3);  // three rows of five
  const Device device(8 * 3);
  REQUIRE(cudaMemset(device.bytes, 0xee, 8 * 3) == cudaSuccess);
  REQUIRE(cudaMemcpy2D(device.bytes, 8, sent.data(), 5, 5, 3, cudaMemcpyHostToDevice) ==
          cudaSuccess);
  for (size_t y = 0; y < 3; ++y) {
    for (size_t x = 0; x < 8; ++x) {
      REQUIRE(device.bytes[y * 8 + x] == (x < 5 ? sent[y * 5 + x] : 0xee));
    }
  }
  REQUIRE(cudaMemcpy2D(device.bytes, 4, sent.data(), 5, 5, 3, cudaMemcpyHostToDevice) ==
          cudaErrorInvalidPitchValue);
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

TEST_CASE("a symbol is memory that only its name reaches") {
  static char symbol;
  __cudaRegisterVar(nullptr, &symbol, nullptr, "symbol", 0, 16, 0, 0);
  const auto sent = counting(8);
  std::vector<unsigned char> back(8);
  REQUIRE(cudaMemcpyToSymbol(&symbol, sent.data(), 8, 8, cudaMemcpyHostToDevice) == cudaSuccess);
  REQUIRE(cudaMemcpyFromSymbol(back.data(), &symbol, 8, 8, cudaMemcpyDeviceToHost) == cudaSuccess);
  REQUIRE(back == sent);
  REQUIRE(cudaMemcpyToSymbol(&symbol, sent.data(), 8, 9, cudaMemcpyHostToDevice) ==
          cudaErrorInvalidValue);
  REQUIRE(cudaMemcpyToSymbol(back.data(), sent.data(), 8, 0, cudaMemcpyHostToDevice) ==
          cudaErrorInvalidSymbol);
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
