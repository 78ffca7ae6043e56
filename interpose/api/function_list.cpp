// The tables as text in a section of the library. `tprof coverage` reads it there, and so tells of
// the very library that it is asked about. Nothing here runs. Each entry is a line, its fields
// apart by tabs:
//   library  function  buckets (none: it only helps to count others)  elements  needs  since
//   library  function  reason that it is not wrapped
#include "interpose/api/functions.h"
#include "interpose/api/uncovered.h"

#define BY_DIRECTION "H2D,D2H,D2D,H2H,MANAGED"
#define MANAGED_ONLY "MANAGED"
#define WRAPPED(library, function, buckets, elements, needs, since) \
  library "\t" #function "\t" buckets "\t" elements "\t" needs "\t" #since "\n"

namespace {

// clang-format off
[[gnu::section("tprof_functions"), gnu::used]] constexpr char kList[] =
#define X(name, since, bucket, elements) WRAPPED("nccl", name, #bucket, #elements, "", since)
#define X_TWIN(name, twin, since, bucket, elements, ...) \
  X(name, since, bucket, elements) X(twin, 23200, bucket, elements)
#define X_ORDER(name, since, order, bucket, elements, ...) X(name, since, bucket, elements)
  TPROF_NCCL_COLLECTIVE(X_TWIN) TPROF_NCCL_OTHER(X_ORDER)
#undef X_ORDER
#undef X_TWIN
#undef X

#define X(name, since, ...) WRAPPED("nccl_ep", name, "EP", "count", "", since)
  TPROF_NCCL_EP(X)
#undef X
#define X(name, since, ...) WRAPPED("nccl_ep", name, "", "", "", since)
  TPROF_NCCL_EP_LIFE(X)
#undef X

#define X(name, since, ...) WRAPPED("cudart", name, BY_DIRECTION, "bytes", "", since)
#define X_TWIN(name, twin, since, ...) X(name, since) X(twin, since)
  TPROF_CUDART_COPY(X_TWIN)
#undef X_TWIN
#undef X
#define X(name, since, ...) WRAPPED("cudart", name, "D2D", "bytes", "", since)
  TPROF_CUDART_COPY_PEER(X)
#undef X
#define X(name, twin, since, buckets, ...)                         \
  WRAPPED("cudart", name, buckets, "bytes", "", since) \
  WRAPPED("cudart", twin, buckets, "bytes", "", since)
  TPROF_CUDART_BATCH(X)
#undef X

#define X(name, twin, plain, since, ...)                                             \
  WRAPPED("cuda", name, BY_DIRECTION, "bytes", "TPROF_DRIVER=1", since)  \
  WRAPPED("cuda", twin, BY_DIRECTION, "bytes", "TPROF_DRIVER=1", since)
  TPROF_CUDA_COPY(X)
#undef X
#define X(name, twin, plain, since, ...)                                                \
  WRAPPED("cuda", name, BY_DIRECTION, "bytes", "TPROF_DRIVER=1", since)  \
  WRAPPED("cuda", twin, BY_DIRECTION, "bytes", "TPROF_DRIVER=1", since)
  TPROF_CUDA_BATCH(X)
#undef X

#define X(name, since) WRAPPED("nccl", name, "", "", "", since)
  TPROF_NCCL_LIFE(X)
#undef X
#define X(name, since, ...) WRAPPED("cudart", name, "", "", "", since)
#define X_TWIN(name, twin, since, ...) X(name, since) X(twin, since)
  TPROF_CUDART_MEMORY(X) TPROF_CUDART_GRAPH(X_TWIN) TPROF_CUDART_GRAPH_ONLY(X) TPROF_CUDART_ENTRY(X)
  TPROF_CUDART_UNCOUNTED(X)
#undef X_TWIN
#undef X
#define X(name, since, ...) WRAPPED("cudart", name, "", "", "TPROF_TIMING=events", since)
#define X_TWIN(name, twin, since, ...) X(name, since) X(twin, since)
  TPROF_CUDART_FOLLOW(X_TWIN) TPROF_CUDART_FOLLOW_ONLY(X)
#undef X_TWIN
#undef X
#define X(name, since, ...) \
  WRAPPED("cudart", name, "", "", "TPROF_SCHEDULE=profiler", since)
  TPROF_CUDART_PROFILER(X)
#undef X
#define X(name, since, ...) WRAPPED("cudart", name, "", "", "TPROF_MEMORY=1", since)
#define X_TWIN(name, twin, since, ...) X(name, since) X(twin, since)
  TPROF_CUDART_ALLOCATION(X) TPROF_CUDART_ALLOCATION_ASYNC(X_TWIN)
#undef X_TWIN
#undef X
#define X(name, plain, since, ...) WRAPPED("cuda", name, "", "", "TPROF_MEMORY=1", since)
#define X_TWIN(name, twin, plain, since, ...) X(name, plain, since) X(twin, plain, since)
  TPROF_CUDA_ALLOCATION(X) TPROF_CUDA_ALLOCATION_ASYNC(X_TWIN)
#undef X_TWIN
#undef X
#define X(name, since, ...) WRAPPED("cuda", name, "", "", "TPROF_DRIVER=1", since)
#define X_TWIN(name, twin, plain, since, ...) X(name, since) X(twin, since)
#define X_ONLY(name, plain, since, ...) X(name, since)
  TPROF_CUDA_GRAPH(X_TWIN) TPROF_CUDA_GRAPH_ONLY(X_ONLY) TPROF_CUDA_ENTRY(X)
  TPROF_CUDA_UNCOUNTED(X_TWIN) TPROF_CUDA_UNCOUNTED_ONLY(X)
#undef X_ONLY
#undef X_TWIN
#undef X
#define X(name, since, ...) WRAPPED("cuda", name, "", "", "TPROF_TIMING=events", since)
#define X_TWIN(name, twin, plain, since, ...) X(name, since) X(twin, since)
#define X_ONLY(name, plain, since, ...) X(name, since)
  TPROF_CUDA_FOLLOW(X_TWIN) TPROF_CUDA_FOLLOW_ONLY(X_ONLY)
#undef X_ONLY
#undef X_TWIN
#undef X
#define X(name, since) WRAPPED("cupti", name, "", "", "TPROF_TIMING=cupti", since)
  TPROF_CUPTI(X)
#undef X
#define X(library, name, reason) #library "\t" #name "\t" reason "\n"
  TPROF_CUDART_UNCOVERED(X) TPROF_CUDA_UNCOVERED(X);
#undef X
// clang-format on

}  // namespace
