// Events, for the runtime and the driver.
#pragma once

#include "engine/stream.h"

namespace standin {

cudaEvent_t create_event(int device, unsigned flags);
cudaError_t destroy_event(cudaEvent_t event);
cudaError_t record_event(cudaEvent_t event, CUstream_st& stream);
cudaError_t wait_event(CUstream_st& stream, cudaEvent_t event);
cudaError_t query_event(cudaEvent_t event);
cudaError_t synchronize_event(cudaEvent_t event);
cudaError_t elapsed(float* milliseconds, cudaEvent_t start, cudaEvent_t end);

}  // namespace standin
