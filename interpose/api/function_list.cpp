// The tables as text in a section of the library, for `tprof coverage`: so it tells of the very
// library that it is asked about. Nothing here runs. A line each, its fields apart by tabs:
//   wrapped  library  function  buckets, or none where it only helps to count others  elements
//   needs since    function  version not      library  function  reason
#include "functions.h"
#include "since.h"
#include "uncovered.h"

#define BY_DIRECTION "H2D,D2H,D2D,H2H,MANAGED"
#define MANAGED_ONLY "MANAGED"
#define WRAPPED(library, function, buckets, elements, needs) \
  "wrapped\t" library "\t" #function "\t" buckets "\t" elements "\t" needs "\n"

// Of the driver's, by the name that cuGetProcAddress knows.
#define BUCKETS_cuMemcpyBatchAsync BY_DIRECTION
#define BUCKETS_cuMemcpy3DBatchAsync BY_DIRECTION
#define BUCKETS_cuMemPrefetchAsync MANAGED_ONLY
#define BUCKETS_cuMemPrefetchBatchAsync MANAGED_ONLY
#define BUCKETS_cuMemDiscardAndPrefetchBatchAsync MANAGED_ONLY

namespace {

// clang-format off
[[gnu::section("tprof_functions"), gnu::used]] constexpr char kList[] =
#define X(name, version) "since\t" #name "\t" #version "\n"
  TPROF_SINCE(X)  // before those of the tables: of two the first is taken
#undef X
#define X(name, bucket, elements) WRAPPED("nccl", name, #bucket, #elements, "")
#define X_TWIN(name, twin, bucket, elements, ...) X(name, bucket, elements) X(twin, bucket, elements)
#define X_ORDER(name, order, bucket, elements, ...) X(name, bucket, elements)
  TPROF_NCCL_COLLECTIVE(X_TWIN) TPROF_NCCL_OTHER(X_ORDER)
#undef X_ORDER
#undef X_TWIN
#undef X
#define X(name, ...) WRAPPED("cudart", name, BY_DIRECTION, "bytes", "")
#define X_TWIN(name, twin, ...) X(name) X(twin)
  TPROF_CUDART_COPY(X_TWIN) TPROF_CUDART_COPY_ARRAY(X_TWIN)
#undef X_TWIN
#undef X
#define X(name, ...) WRAPPED("cudart", name, BY_DIRECTION, "bytes", "")
  TPROF_CUDART_NODE(X) TPROF_CUDART_ANY_NODE(X)
#undef X
#define X(name, ...) WRAPPED("cudart", name, "D2D", "bytes", "")
  TPROF_CUDART_COPY_PEER(X)
#undef X
#define X(name, twin, buckets, ...)             \
  WRAPPED("cudart", name, buckets, "bytes", "") \
  WRAPPED("cudart", twin, buckets, "bytes", "")
  TPROF_CUDART_BATCH(X)
#undef X
#define X(name, twin, plain, since, ...)                         \
  WRAPPED("cuda", name, BY_DIRECTION, "bytes", "TPROF_DRIVER=1") \
  WRAPPED("cuda", twin, BY_DIRECTION, "bytes", "TPROF_DRIVER=1") \
  "since\t" #name "\t" #since "\n"
  TPROF_CUDA_COPY(X)
#undef X
#define X(name, twin, plain, since, ...)                            \
  WRAPPED("cuda", name, BUCKETS_##plain, "bytes", "TPROF_DRIVER=1") \
  WRAPPED("cuda", twin, BUCKETS_##plain, "bytes", "TPROF_DRIVER=1") \
  "since\t" #name "\t" #since "\n"
  TPROF_CUDA_BATCH(X)
#undef X
#define X(name) WRAPPED("nccl", name, "", "", "")
  TPROF_NCCL_LIFE(X)
#undef X
#define X(name) WRAPPED("cudart", name, "", "", "")
  TPROF_CUDART_MEMORY(X) TPROF_CUDART_GRAPH(X) TPROF_CUDART_ENTRY(X)
#undef X
#define X(name, twin, plain, since, ...)           \
  WRAPPED("cuda", name, "", "", "TPROF_DRIVER=1") \
  WRAPPED("cuda", twin, "", "", "TPROF_DRIVER=1") \
  "since\t" #name "\t" #since "\n"
  TPROF_CUDA_GRAPH(X)
#undef X
#define X(name, plain, since, ...)                 \
  WRAPPED("cuda", name, "", "", "TPROF_DRIVER=1") \
  "since\t" #name "\t" #since "\n"
  TPROF_CUDA_GRAPH_ONLY(X)
#undef X
#define X(name) WRAPPED("cuda", name, "", "", "TPROF_DRIVER=1")
  TPROF_CUDA_ENTRY(X)
#undef X
#define X(library, name, reason) "not\t" #library "\t" #name "\t" reason "\n"
  TPROF_CUDART_UNCOVERED(X) TPROF_CUDA_UNCOVERED(X);
#undef X
// clang-format on

}  // namespace
