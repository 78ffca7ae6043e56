// The wrappers of the CUDA runtime's copies of boxes and arrays, generated from api/cudart.h. Apart
// from the others so that how many there are does not bear on what the compiler makes of those.

// The header's word on the one-dimensional copies of arrays, which every version still exports.
// clang asks for it where the templates are that get them.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#include "interpose/capture/box.h"
#include "interpose/hook/copy_wrapper.h"

using tprof::box_copy;

TPROF_CUDART_COPY_ARRAY(TPROF_COPY_WRAPPERS)
