// The steps that count calls which allocate and free; rows of the API tables name them. The
// runtime's and the driver's functions share them.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>

#include "interpose/real/driver_memory.h"
#include "interpose/record/allocations.h"
#include "interpose/record/graphs.h"
#include "interpose/record/thread.h"
#include "interpose/session/config.h"

namespace tprof::allocations {

// The kind of memory that a call allocates.
enum class Where : std::uint8_t { device, pinned, managed };

inline std::uint8_t place_of(Where where, const void* at) {
  if (where == Where::pinned) return kPinnedMemory;
  if (where == Where::managed) return kManagedMemory;
  // A pool's memory is on the pool's device.
  return place_of_device(driver::device_of(at, driver::current_device(t_thread.device)));
}

// True if the stream captures: the memory then belongs to the graph, and exists while that runs.
inline bool captures(cudaStream_t stream) {
  return graphs::captured_into(stream) != nullptr;
}

// `at` is where the call puts the address: void** or CUdeviceptr*.
struct Allocates {
  const void* at;
  std::uint64_t bytes;
  Where where = Where::device;
  bool counts = true;
  void after(bool accepted) const {
    if (!accepted || !counts || at == nullptr) return;
    const void* memory = nullptr;
    std::memcpy(&memory, at, sizeof memory);
    allocated(key_of(memory), bytes, place_of(where, memory));
  }
};
inline Allocates allocates_on(cudaStream_t stream, const void* at, std::uint64_t bytes) {
  return {at, bytes, Where::device, !captures(stream)};
}

// The program's own host memory, which CUDA pins.
struct Pins {
  const void* at;
  std::uint64_t bytes;
  void after(bool accepted) const {
    if (accepted) allocated(key_of(at), bytes, kPinnedMemory);
  }
};

struct Frees {
  std::uint64_t key;
  Taken taken{};
  void before() { taken = take(key); }
  void after(bool accepted) const {
    if (!accepted) put_back(taken);
  }
};
// A free on a stream counts at once, since the program must not use the memory any more.
inline Frees frees_on(cudaStream_t stream, std::uint64_t key) {
  return {captures(stream) ? 0 : key};
}

struct Creates {
  const CUmemGenericAllocationHandle* handle;
  std::uint64_t bytes;
  const CUmemAllocationProp* wanted;
  void after(bool accepted) const {
    if (!accepted || handle == nullptr || wanted == nullptr) return;
    const bool device = wanted->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    allocated(key_of_handle(*handle), bytes,
              device ? place_of_device(wanted->location.id) : kPinnedMemory);
  }
};
// Memory counts until its first release by any holder of a handle.
struct Retains {
  void after(bool) const {}
};

// The wrapper's body. Nested allocation calls are part of this one, as the runtime's calls of the
// driver. Allocations within other calls are counted, as NCCL's buffers within ncclCommInitRank.
template <typename GetStep, typename F>
[[gnu::always_inline]] inline auto allocation_call(GetStep&& step, F&& real) {
  Thread& t = t_thread;
  if (!opt_in::memory() || t.allocating) [[likely]]
    return real();
  auto call = step();
  if constexpr (requires { call.before(); }) call.before();
  t.allocating = true;
  const auto result = real();
  t.allocating = false;
  call.after(static_cast<int>(result) == 0);
  return result;
}

}  // namespace tprof::allocations

// `stream_meant` is legacy or per_thread; `step` uses it as meant(stream).
#define TPROF_ALLOCATION(stream_meant, arguments, step)              \
  tprof::allocations::allocation_call(                               \
      [&] {                                                          \
        using namespace tprof::allocations;                          \
        [[maybe_unused]] constexpr auto meant = tprof::stream_meant; \
        return TPROF_UNPAREN step;                                   \
      },                                                             \
      [&] { return real arguments; })
