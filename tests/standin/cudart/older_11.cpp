// Functions of libcudart.so.11.0 only, as they were before CUDA 12 changed them.
#include <cstring>

#include "cudart/entry.h"
#include "cudart/older.h"

using namespace standin;

extern "C" {

NOW(cudaFuncGetAttributes);
NOW(cudaGraphExecUpdate);
NOW(cudaGraphInstantiate);

cudaError_t version(int* version) OLD(cudaRuntimeGetVersion);
cudaError_t version(int* version) {
  *version = 11080;
  return cudaSuccess;
}

cudaError_t function_attributes(void* attributes, const void* function) OLD(cudaFuncGetAttributes);
cudaError_t function_attributes(void* attributes, const void* function) {
  constexpr size_t kOldSize = 56;  // it ended with preferredShmemCarveout
  static_assert(offsetof(cudaFuncAttributes, preferredShmemCarveout) == 48);
  cudaFuncAttributes now;
  const cudaError_t error = now_cudaFuncGetAttributes(&now, function);
  if (error == cudaSuccess) std::memcpy(attributes, &now, kOldSize);
  return error;
}

cudaError_t entry_point(const char* name, void** function, unsigned long long flags)
    OLD(cudaGetDriverEntryPoint);
cudaError_t entry_point(const char* name, void** function, unsigned long long flags) {
  cudaDriverEntryPointQueryResult status{};
  return cudaGetDriverEntryPointByVersion(name, function, 11080, flags, &status);
}

cudaError_t instantiate(cudaGraphExec_t* executable, cudaGraph_t graph, cudaGraphNode_t* failed,
                        char* log, size_t log_size) OLD(cudaGraphInstantiate);
cudaError_t instantiate(cudaGraphExec_t* executable, cudaGraph_t graph, cudaGraphNode_t* failed,
                        char* log, size_t log_size) {
  if (failed) *failed = nullptr;
  if (log && log_size > 0) *log = '\0';
  return now_cudaGraphInstantiate(executable, graph, 0);
}

cudaError_t update(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphNode_t* failed,
                   cudaGraphExecUpdateResult* result) OLD(cudaGraphExecUpdate);
cudaError_t update(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphNode_t* failed,
                   cudaGraphExecUpdateResult* result) {
  cudaGraphExecUpdateResultInfo info{};
  const cudaError_t error = now_cudaGraphExecUpdate(executable, graph, &info);
  if (failed) *failed = info.errorNode;
  if (result) *result = info.result;
  return error;
}

}  // extern "C"
