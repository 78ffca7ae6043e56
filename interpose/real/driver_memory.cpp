#include "interpose/real/driver_memory.h"

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "interpose/real/resolve.h"

namespace tprof::driver {

using resolve::DriverFunction;

namespace {

using AskPointer = int(unsigned, const CUpointer_attribute*, void**, std::uintptr_t);

AskPointer* pointer_query() {
  static constinit DriverFunction<AskPointer> query("cuPointerGetAttributes");
  return query.get();
}

struct Kind {
  bool device = false;
  bool managed = false;
  HostMemory host = HostMemory::unknown;  // if it is not device memory
};

Kind kind_of(AskPointer* ask, const void* address) {
  if (address == nullptr) return {true, false};
  if (ask == nullptr) return {};
  static constexpr CUpointer_attribute kAttributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                        CU_POINTER_ATTRIBUTE_IS_MANAGED};
  unsigned type = 0;
  unsigned managed = 0;
  void* answers[] = {&type, &managed};
  // Both are 0 for memory that CUDA does not know: the program's own host memory.
  if (ask(2, kAttributes, answers, reinterpret_cast<std::uintptr_t>(address)) != 0) return {};
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
  static constinit DriverFunction<int(int*)> query("cuCtxGetDevice");
  auto* ask = query.get();
  int device = 0;
  return ask != nullptr && ask(&device) == 0 ? device : otherwise;
}

Direction direction(const void* dst, const void* src) {
  auto* ask = pointer_query();
  const auto to = kind_of(ask, dst);
  const auto from = kind_of(ask, src);
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
  auto* ask = pointer_query();
  if (ask == nullptr) {
    in_vain.fetch_add(1, std::memory_order_relaxed);
    return HostMemory::unknown;
  }
  return kind_of(ask, address).host;
}

int device_of(const void* address, int otherwise) {
  auto* ask = pointer_query();
  if (ask == nullptr) return otherwise;
  static constexpr CUpointer_attribute kAttributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  unsigned type = 0;
  int device = otherwise;
  void* answers[] = {&type, &device};
  const bool known = ask(2, kAttributes, answers, reinterpret_cast<std::uintptr_t>(address)) == 0;
  return known && type != 0 ? device : otherwise;
}

}  // namespace tprof::driver
