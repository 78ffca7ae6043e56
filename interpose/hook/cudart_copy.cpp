// The wrappers of the CUDA runtime's copies, generated from api/cudart.h.
#include "interpose/hook/copy_wrapper.h"

#include "interpose/calls/box.h"

using tprof::box_copy;

TPROF_CUDART_COPY(TPROF_COPY_WRAPPERS)
TPROF_CUDART_COPY_PEER(TPROF_COPY_WRAPPER)
