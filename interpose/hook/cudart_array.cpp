// The wrappers of the CUDA runtime's copies of boxes and arrays, generated from api/cudart.h. They
// are apart from the others, so that their number does not affect what the compiler makes of those.

// The header deprecates the one-dimensional copies of arrays, which every version still exports.
// clang wants this where the templates that get them are.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#include "interpose/capture/box.h"
#include "interpose/hook/copy_wrapper.h"

using tprof::box_copy;

TPROF_CUDART_COPY_ARRAY(TPROF_COPY_WRAPPERS)
