#include "interpose/real/driver_memory.h"

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "interpose/real/resolve.h"

namespace tprof::driver {

using resolve::DriverFunction;

namespace {

constinit DriverFunction<int(unsigned, const CUpointer_attribute*, void**, std::uintptr_t)>
    g_attributes("cuPointerGetAttributes");
constinit DriverFunction<int(int*)> g_device("cuCtxGetDevice");

// Asks for the type of memory and for one more attribute. Both answers are 0 for memory that CUDA
// does not know: the program's own host memory.
template <typename T>
bool ask(const void* address, CUpointer_attribute attribute, unsigned& type, T& answer) {
  const CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, attribute};
  void* answers[] = {&type, &answer};
  return g_attributes(2U, attributes, answers, reinterpret_cast<std::uintptr_t>(address)) == 0;
}

struct Kind {
  bool device = false;
  bool managed = false;
  HostMemory host = HostMemory::unknown;  // if it is not device memory
};

Kind kind_of(const void* address) {
  if (address == nullptr) return {true, false};
  unsigned type = 0;
  unsigned managed = 0;
  if (!ask(address, CU_POINTER_ATTRIBUTE_IS_MANAGED, type, managed)) return {};
  Kind kind{type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_ARRAY,
            managed != 0 || type == CU_MEMORYTYPE_UNIFIED};
  if (kind.managed) {
    kind.host = HostMemory::managed;
  } else if (type == CU_MEMORYTYPE_HOST) {
    kind.host = HostMemory::pinned;
  } else if (type == 0) {
    kind.host = HostMemory::pageable;
  }
  return kind;
}

}  // namespace

int current_device(int otherwise) {
  int device = 0;
  return g_device(&device) == 0 ? device : otherwise;
}

Direction direction(const void* dst, const void* src) {
  const auto to = kind_of(dst);
  const auto from = kind_of(src);
  if (to.managed || from.managed) return {Bucket::MANAGED};
  if (to.device == from.device) return {to.device ? Bucket::D2D : Bucket::H2H};
  if (to.device) return {Bucket::H2D, from.host};
  return {Bucket::D2H, to.host};
}

HostMemory host_memory(const void* address) {
  // A runtime loads the driver at its first call, so if copies find no driver there will be none.
  // Looking for it takes the loader's lock, so we give up after kTries.
  constexpr unsigned kTries = 16;
  static constinit std::atomic<unsigned> in_vain{0};
  if (in_vain.load(std::memory_order_relaxed) >= kTries) return HostMemory::unknown;
  if (g_attributes.get() == nullptr) in_vain.fetch_add(1, std::memory_order_relaxed);
  return kind_of(address).host;
}

int device_of(const void* address, int otherwise) {
  unsigned type = 0;
  int device = otherwise;
  const bool known = ask(address, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, type, device);
  return known && type != 0 ? device : otherwise;
}

}  // namespace tprof::driver
