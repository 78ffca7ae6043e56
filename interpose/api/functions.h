// Every wrapped function has a number. The data movers come first: they name records and the
// ledger's rows, which have a byte for the number.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpose/api/cuda.h"
#include "interpose/api/cudart.h"
#include "interpose/api/cupti.h"
#include "interpose/api/nccl.h"
#include "interpose/base/hash.h"
#include "interpose/format/ring_file.h"

namespace tprof {

// All tables, in this order. X(name, ...), X_TWIN(name, twin, ...)
// clang-format off
#define TPROF_EVERY(X, X_TWIN)                                                                   \
  TPROF_NCCL_COLLECTIVE(X_TWIN) TPROF_NCCL_OTHER(X) TPROF_NCCL_EP(X)                             \
  TPROF_CUDART_COPY(X_TWIN) TPROF_CUDART_COPY_PEER(X) TPROF_CUDART_BATCH(X_TWIN)                 \
  TPROF_CUDA_COPY(X_TWIN) TPROF_CUDA_BATCH(X_TWIN) TPROF_FOUND_IN_GRAPH(X)                       \
  TPROF_NCCL_LIFE(X) TPROF_NCCL_EP_LIFE(X)                                                       \
  TPROF_CUDART_MEMORY(X) TPROF_CUDART_GRAPH(X_TWIN) TPROF_CUDART_GRAPH_ONLY(X)                   \
  TPROF_CUDART_FOLLOW(X_TWIN) TPROF_CUDART_FOLLOW_ONLY(X) TPROF_CUDART_PROFILER(X)               \
  TPROF_CUDART_ENTRY(X) TPROF_CUDART_ALLOCATION(X) TPROF_CUDART_ALLOCATION_ASYNC(X_TWIN)         \
  TPROF_CUDA_ALLOCATION(X) TPROF_CUDA_ALLOCATION_ASYNC(X_TWIN)                                   \
  TPROF_CUDA_GRAPH(X_TWIN) TPROF_CUDA_GRAPH_ONLY(X)                                              \
  TPROF_CUDA_FOLLOW(X_TWIN) TPROF_CUDA_FOLLOW_ONLY(X) TPROF_CUDA_ENTRY(X)                        \
  TPROF_CUPTI(X) TPROF_CUDART_UNCOUNTED(X) TPROF_CUDA_UNCOUNTED(X_TWIN) TPROF_CUDA_UNCOUNTED_ONLY(X)
// clang-format on

enum class Fn : std::uint16_t {
  none,
#define X(name, ...) name,
#define X_TWIN(name, twin, ...) name, twin,
  TPROF_EVERY(X, X_TWIN)
#undef X_TWIN
#undef X
      count_
};
inline constexpr std::size_t kFunctionCount = static_cast<std::size_t>(Fn::count_);
static_assert(kFunctionCount <= kMaxFunctions);

enum class Library : std::uint8_t { nccl, cudart, cuda, cupti, nccl_ep };

// The name of each library's file, and the sonames by which it may be mapped, newest first.
struct LibraryNames {
  std::string_view file;
  const char* soname[3];
};
inline constexpr LibraryNames kLibraries[] = {
    {"libnccl.so", {"libnccl.so.2", "libtorch_cuda.so"}},
    {"libcudart.so", {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"}},
    {"libcuda.so", {"libcuda.so.1"}},
    {"libcupti.so", {"libcupti.so.13", "libcupti.so.12"}},
    {"libnccl_ep.so", {"libnccl_ep.so.0", "libnccl_ep.so"}}};
constexpr const LibraryNames& names(Library library) {
  return kLibraries[static_cast<std::size_t>(library)];
}

struct FunctionInfo {
  std::string_view name;
  Library library;
  bool data;  // moves data: has rows and lines
  Order order;
  Elements elements;
  std::uint64_t operation;  // the hash of what it does: equal for twins; the signature's name
};

// clang-format off
#define ROW(name, library, data, order, elements) {#name, Library::library, data, Order::order, Elements::elements, fnv1a(#name)},
#define COLLECTIVE(name, twin, since, bucket, elements, ...) \
  ROW(name, nccl, true, collective, elements) \
  {#twin, Library::nccl, true, Order::collective, Elements::elements, fnv1a(#name)},
#define OTHER(name, since, order, bucket, elements, ...) ROW(name, nccl, true, order, elements)
#define EP(name, ...) ROW(name, nccl_ep, true, none, count)
#define COPY(name, ...) ROW(name, cudart, true, none, count)
#define COPIES(name, twin, ...) COPY(name) COPY(twin)
#define CUDA_COPY(name, ...) ROW(name, cuda, true, none, count)
#define CUDA_COPIES(name, twin, ...) CUDA_COPY(name) CUDA_COPY(twin)
#define NCCL(name, ...) ROW(name, nccl, false, none, count)
#define EP_LIFE(name, ...) ROW(name, nccl_ep, false, none, count)
#define CUDART(name, ...) ROW(name, cudart, false, none, count)
#define CUDARTS(name, twin, ...) CUDART(name) CUDART(twin)
#define CUDA(name, ...) ROW(name, cuda, false, none, count)
#define CUDAS(name, twin, ...) CUDA(name) CUDA(twin)
#define CUPTI(name, ...) ROW(name, cupti, false, none, count)
inline constexpr FunctionInfo kFunctions[kFunctionCount] = {
  {},
  TPROF_NCCL_COLLECTIVE(COLLECTIVE) TPROF_NCCL_OTHER(OTHER) TPROF_NCCL_EP(EP)
  TPROF_CUDART_COPY(COPIES) TPROF_CUDART_COPY_PEER(COPY) TPROF_CUDART_BATCH(COPIES)
  TPROF_CUDA_COPY(CUDA_COPIES) TPROF_CUDA_BATCH(CUDA_COPIES) TPROF_FOUND_IN_GRAPH(CUDA_COPY)
  TPROF_NCCL_LIFE(NCCL) TPROF_NCCL_EP_LIFE(EP_LIFE)
  TPROF_CUDART_MEMORY(CUDART) TPROF_CUDART_GRAPH(CUDARTS) TPROF_CUDART_GRAPH_ONLY(CUDART)
  TPROF_CUDART_FOLLOW(CUDARTS) TPROF_CUDART_FOLLOW_ONLY(CUDART) TPROF_CUDART_PROFILER(CUDART)
  TPROF_CUDART_ENTRY(CUDART) TPROF_CUDART_ALLOCATION(CUDART) TPROF_CUDART_ALLOCATION_ASYNC(CUDARTS)
  TPROF_CUDA_ALLOCATION(CUDA) TPROF_CUDA_ALLOCATION_ASYNC(CUDAS)
  TPROF_CUDA_GRAPH(CUDAS) TPROF_CUDA_GRAPH_ONLY(CUDA)
  TPROF_CUDA_FOLLOW(CUDAS) TPROF_CUDA_FOLLOW_ONLY(CUDA) TPROF_CUDA_ENTRY(CUDA)
  TPROF_CUPTI(CUPTI) TPROF_CUDART_UNCOUNTED(CUDART) TPROF_CUDA_UNCOUNTED(CUDAS) TPROF_CUDA_UNCOUNTED_ONLY(CUDA)
};
#undef ROW
#undef COLLECTIVE
#undef OTHER
#undef EP
#undef COPY
#undef COPIES
#undef CUDA_COPY
#undef CUDA_COPIES
#undef NCCL
#undef EP_LIFE
#undef CUDART
#undef CUDARTS
#undef CUDA
#undef CUDAS
#undef CUPTI
// clang-format on

constexpr const FunctionInfo& info(Fn fn) {
  return kFunctions[static_cast<std::size_t>(fn)];
}

// True if a program that takes it by address needs the wrapper with TPROF_MEMORY=1 only.
constexpr bool is_allocation(Fn fn) {
#define X(name, ...) fn == Fn::name ||
#define X_TWIN(name, twin, ...) X(name) X(twin)
  return TPROF_CUDART_ALLOCATION(X) TPROF_CUDART_ALLOCATION_ASYNC(X_TWIN) TPROF_CUDA_ALLOCATION(X)
      TPROF_CUDA_ALLOCATION_ASYNC(X_TWIN) X(cudaDeviceReset) false;
#undef X_TWIN
#undef X
}

// Functions of the driver that are looked at with TPROF_TIMING=events only.
constexpr bool is_followed(Fn fn) {
#define X(name, ...) fn == Fn::name ||
#define X_TWIN(name, twin, ...) X(name) X(twin)
  return TPROF_CUDA_FOLLOW(X_TWIN) TPROF_CUDA_FOLLOW_ONLY(X) false;
#undef X_TWIN
#undef X
}

// Functions of the driver by which a stream begins to capture: no event of ours may get in there.
constexpr bool begins_capture(Fn fn) {
#define X(name) fn == Fn::name || fn == Fn::name##_ptsz ||
  return X(cuStreamBeginCapture) X(cuStreamBeginCapture_v2) X(cuStreamBeginCaptureToGraph)
      X(cuStreamBeginRecaptureToGraph) false;
#undef X
}

constexpr std::size_t data_functions() {
  std::size_t n = 1;
  while (n < kFunctionCount && kFunctions[n].data) ++n;
  return n;
}
constexpr bool data_functions_come_first() {
  for (std::size_t n = data_functions(); n < kFunctionCount; ++n) {
    if (kFunctions[n].data) return false;
  }
  return true;
}
static_assert(data_functions() <= kMaxDataFunctions && data_functions_come_first());

static_assert(static_cast<std::size_t>(Fn::ncclCommGetAsyncError) < 256);

// Returns the number of a data mover, or of a function of a communicator's life, in records and in
// the ledger's keys.
constexpr std::uint8_t number(Fn fn) {
  return static_cast<std::uint8_t>(fn);
}

}  // namespace tprof
