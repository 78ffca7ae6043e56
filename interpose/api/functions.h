// Every wrapped function has a number; the data movers come first and name the ledger's rows.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cudart.h"
#include "interpose/format/ring_file.h"
#include "nccl.h"

namespace tprof {

enum class Fn : std::uint8_t {
  none,
#define X(name, ...) name,
#define X_TWIN(name, twin, ...) name, twin,
  TPROF_NCCL_DATA(X) TPROF_CUDART_COPY(X_TWIN) TPROF_CUDART_COPY_PEER(X) TPROF_NCCL_LIFE(X)
      TPROF_CUDART_MEMORY(X) TPROF_CUDART_GRAPH(X)
#undef X_TWIN
#undef X
          count_
};
inline constexpr std::size_t kFunctionCount = static_cast<std::size_t>(Fn::count_);
static_assert(kFunctionCount <= kMaxFunctions && kFunctionCount <= kMetaThread);

enum class Library : std::uint8_t { nccl, cudart };

struct FunctionInfo {
  std::string_view name;
  Library library;
  bool data;  // moves data: has rows and lines
  bool collective;
  Elements elements;
};

inline constexpr FunctionInfo kFunctions[kFunctionCount] = {
    {"", Library::nccl, false, false, Elements::count},
#define X(name, bucket, elements, collective, ...) \
  {#name, Library::nccl, true, collective, Elements::elements},
    TPROF_NCCL_DATA(X)
#undef X
#define X(name, ...) {#name, Library::cudart, true, false, Elements::count},
#define X_TWIN(name, twin, ...) X(name) X(twin)
        TPROF_CUDART_COPY(X_TWIN) TPROF_CUDART_COPY_PEER(X)
#undef X_TWIN
#undef X
#define X(name) {#name, Library::nccl, false, false, Elements::count},
            TPROF_NCCL_LIFE(X)
#undef X
#define X(name) {#name, Library::cudart, false, false, Elements::count},
                TPROF_CUDART_MEMORY(X) TPROF_CUDART_GRAPH(X)
#undef X
};

constexpr const FunctionInfo& info(Fn fn) {
  return kFunctions[static_cast<std::size_t>(fn)];
}

}  // namespace tprof
