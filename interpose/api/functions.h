// Every wrapped function has a number. Data movers come first, since records and ledger rows have
// only a byte for it.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpose/api/cuda.h"
#include "interpose/api/cudart.h"
#include "interpose/api/nccl.h"
#include "interpose/base/hash.h"
#include "interpose/format/ring_file.h"

// Functions that make a program CUPTI's client: X(function, since). Their wrappers only pass the
// call on, unless TPROF_TIMING=cupti made us the client (hook/cupti.cpp).
#define TPROF_CUPTI(X)        \
  X(cuptiSubscribe, 4000)     \
  X(cuptiSubscribe_v2, 13000) \
  X(cuptiActivityRegisterCallbacks, 6000)

namespace tprof {

// All tables, in this order: functions that move data, then the others. Rows are X(name, since,
// ...), or X_TWIN(name, twin, since, ...)
// clang-format off
#define TPROF_COPIES(X, X_TWIN)                                                                  \
  TPROF_CUDART_COPY(X_TWIN) TPROF_CUDART_COPY_PEER(X) TPROF_CUDART_BATCH(X_TWIN)                 \
  TPROF_CUDA_COPY(X_TWIN) TPROF_CUDA_BATCH(X_TWIN)
#define TPROF_HELPERS(X, X_TWIN)                                                                 \
  TPROF_NCCL_LIFE(X) TPROF_NCCL_EP_LIFE(X)                                                       \
  TPROF_CUDART_MEMORY(X) TPROF_CUDART_GRAPH(X, X_TWIN) TPROF_CUDART_FOLLOW(X, X_TWIN)            \
  TPROF_CUDART_PROFILER(X) TPROF_CUDART_ENTRY(X) TPROF_CUDART_ALLOCATION(X, X_TWIN)              \
  TPROF_CUDA_ALLOCATION(X, X_TWIN) TPROF_CUDA_GRAPH(X, X_TWIN) TPROF_CUDA_FOLLOW(X, X_TWIN)      \
  TPROF_CUDA_ENTRY(X) TPROF_CUPTI(X)                                                             \
  TPROF_CUDART_UNCOUNTED(X, X_TWIN) TPROF_CUDA_UNCOUNTED(X, X_TWIN)
#define TPROF_EVERY(X, X_TWIN)                                                                   \
  TPROF_NCCL_COLLECTIVE(X_TWIN) TPROF_NCCL_OTHER(X) TPROF_NCCL_EP(X)                             \
  TPROF_COPIES(X, X_TWIN) TPROF_HELPERS(X, X_TWIN)
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

// The file name of each library, and its possible sonames, newest first.
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

constexpr Library library_of(std::string_view function) {
  if (function.starts_with("ncclEp")) return Library::nccl_ep;
  if (function.starts_with("nccl")) return Library::nccl;
  if (function.starts_with("cupti")) return Library::cupti;
  return function.find("cuda") == std::string_view::npos ? Library::cuda : Library::cudart;
}

struct FunctionInfo {
  std::string_view name;
  Order order = Order::none;
  Elements elements = Elements::count;
  std::string_view plain = name;  // of a twin: the plain function's name
  Library library = library_of(name);
  std::uint64_t operation = fnv1a(plain);  // for the signature: the same for twins
};

inline constexpr FunctionInfo kFunctions[kFunctionCount] = {
    {},
#define COLLECTIVE(name, twin, since, bucket, elements, ...) \
  {#name, Order::collective, Elements::elements},            \
      {#twin, Order::collective, Elements::elements, #name},
#define OTHER(name, since, order, bucket, elements, ...) {#name, Order::order, Elements::elements},
#define X(name, ...) {#name},
#define X_TWIN(name, twin, ...) {#name}, {#twin},
    TPROF_NCCL_COLLECTIVE(COLLECTIVE) TPROF_NCCL_OTHER(OTHER) TPROF_NCCL_EP(X)
        TPROF_COPIES(X, X_TWIN) TPROF_HELPERS(X, X_TWIN)
#undef COLLECTIVE
#undef OTHER
#undef X
#undef X_TWIN
};

constexpr const FunctionInfo& info(Fn fn) {
  return kFunctions[static_cast<std::size_t>(fn)];
}

// True if a program that takes it by address needs the wrapper only with TPROF_MEMORY=1.
constexpr bool is_allocation(Fn fn) {
#define X(name, ...) fn == Fn::name ||
#define X_TWIN(name, twin, ...) X(name) X(twin)
  return TPROF_CUDART_ALLOCATION(X, X_TWIN) TPROF_CUDA_ALLOCATION(X, X_TWIN)
      X(cudaDeviceReset) false;
#undef X_TWIN
#undef X
}

// Driver functions that are followed only with TPROF_TIMING=events.
constexpr bool is_followed(Fn fn) {
#define X(name, ...) fn == Fn::name ||
#define X_TWIN(name, twin, ...) X(name) X(twin)
  return TPROF_CUDA_FOLLOW(X, X_TWIN) false;
#undef X_TWIN
#undef X
}

// Driver functions that make a stream capture: no event of ours may get into the capture.
constexpr bool begins_capture(Fn fn) {
#define X(name) fn == Fn::name || fn == Fn::name##_ptsz ||
  return X(cuStreamBeginCapture) X(cuStreamBeginCapture_v2) X(cuStreamBeginCaptureToGraph)
      X(cuStreamBeginRecaptureToGraph) false;
#undef X
}

// True if it moves data, and so has rows and lines.
constexpr bool moves_data(Fn fn) {
  return fn != Fn::none && fn < Fn::ncclGroupStart;
}
static_assert(static_cast<std::size_t>(Fn::ncclGroupStart) <= kMaxDataFunctions);

static_assert(static_cast<std::size_t>(Fn::ncclCommGetAsyncError) < 256);

// Returns the number, in records and ledger keys, of a data mover or of a function of a
// communicator's life.
constexpr std::uint8_t number(Fn fn) {
  return static_cast<std::uint8_t>(fn);
}

}  // namespace tprof
