// The tables as text in a section of the library, from which `tprof coverage` reads what this
// library covers. Nothing here runs. Each entry is a line, its fields apart by tabs:
//   library  function  buckets (none: it only helps to count others)  elements  needs  since
//   library  function  reason that it is not wrapped
#include "interpose/api/functions.h"
#include "interpose/api/uncovered.h"

#define BY_DIRECTION "H2D,D2H,D2D,H2H,MANAGED"
#define LISTED(library, function, buckets, elements, needs, since) \
  library "\t" #function "\t" buckets "\t" elements "\t" needs "\t" #since "\n"
#define LEFT_OUT(library, function, reason) #library "\t" #function "\t" reason "\n"

#define COLLECTIVE(name, twin, since, bucket, elements, ...) \
  OTHER(name, since, , bucket, elements) OTHER(twin, 23200, , bucket, elements)
#define OTHER(name, since, order, bucket, elements, ...) \
  LISTED("nccl", name, #bucket, #elements, "", since)
#define EP(name, since, ...) LISTED("nccl_ep", name, "EP", "count", "", since)
#define COPY(name, twin, since, ...)                       \
  LISTED("cudart", name, BY_DIRECTION, "bytes", "", since) \
  LISTED("cudart", twin, BY_DIRECTION, "bytes", "", since)
#define PEER(name, since, ...) LISTED("cudart", name, "D2D", "bytes", "", since)
#define CUDA_COPY(name, twin, since, ...)                              \
  LISTED("cuda", name, BY_DIRECTION, "bytes", "TPROF_DRIVER=1", since) \
  LISTED("cuda", twin, BY_DIRECTION, "bytes", "TPROF_DRIVER=1", since)
#define X(library, needs, name, since) LISTED(library, name, "", "", needs, since)
#define NCCL(name, since) X("nccl", "", name, since)
#define NCCL_EP(name, since, ...) X("nccl_ep", "", name, since)
#define CUDART(name, since, ...) X("cudart", "", name, since)
#define CUDARTS(name, twin, since, ...) CUDART(name, since) CUDART(twin, since)
#define CUDART_TIMED(name, since, ...) X("cudart", "TPROF_TIMING=events", name, since)
#define CUDARTS_TIMED(name, twin, since, ...) CUDART_TIMED(name, since) CUDART_TIMED(twin, since)
#define CUDART_SWITCH(name, since, ...) X("cudart", "TPROF_SCHEDULE=profiler", name, since)
#define CUDART_MEMORY(name, since, ...) X("cudart", "TPROF_MEMORY=1", name, since)
#define CUDARTS_MEMORY(name, twin, since, ...) CUDART_MEMORY(name, since) CUDART_MEMORY(twin, since)
#define CUDA(name, since, ...) X("cuda", "TPROF_DRIVER=1", name, since)
#define CUDAS(name, twin, since, ...) CUDA(name, since) CUDA(twin, since)
#define CUDA_TIMED(name, since, ...) X("cuda", "TPROF_TIMING=events", name, since)
#define CUDAS_TIMED(name, twin, since, ...) CUDA_TIMED(name, since) CUDA_TIMED(twin, since)
#define CUDA_MEMORY(name, since, ...) X("cuda", "TPROF_MEMORY=1", name, since)
#define CUDAS_MEMORY(name, twin, since, ...) CUDA_MEMORY(name, since) CUDA_MEMORY(twin, since)
#define CUPTI(name, since) X("cupti", "TPROF_TIMING=cupti", name, since)

namespace {

// clang-format off
[[gnu::section("tprof_functions"), gnu::used]] constexpr char kList[] =
  TPROF_NCCL_COLLECTIVE(COLLECTIVE) TPROF_NCCL_OTHER(OTHER) TPROF_NCCL_EP(EP)
  TPROF_NCCL_EP_LIFE(NCCL_EP) TPROF_CUDART_COPY(COPY) TPROF_CUDART_COPY_PEER(PEER)
  TPROF_CUDART_BATCH(COPY) TPROF_CUDA_COPY(CUDA_COPY) TPROF_CUDA_BATCH(CUDA_COPY)
  TPROF_NCCL_LIFE(NCCL) TPROF_CUDART_MEMORY(CUDART) TPROF_CUDART_GRAPH(CUDART, CUDARTS)
  TPROF_CUDART_ENTRY(CUDART) TPROF_CUDART_UNCOUNTED(CUDART, CUDARTS)
  TPROF_CUDART_FOLLOW(CUDART_TIMED, CUDARTS_TIMED) TPROF_CUDART_PROFILER(CUDART_SWITCH)
  TPROF_CUDART_ALLOCATION(CUDART_MEMORY, CUDARTS_MEMORY)
  TPROF_CUDA_ALLOCATION(CUDA_MEMORY, CUDAS_MEMORY) TPROF_CUDA_GRAPH(CUDA, CUDAS)
  TPROF_CUDA_ENTRY(CUDA) TPROF_CUDA_UNCOUNTED(CUDA, CUDAS)
  TPROF_CUDA_FOLLOW(CUDA_TIMED, CUDAS_TIMED) TPROF_CUPTI(CUPTI)
  TPROF_CUDART_UNCOVERED(LEFT_OUT) TPROF_CUDA_UNCOVERED(LEFT_OUT);
// clang-format on

}  // namespace
