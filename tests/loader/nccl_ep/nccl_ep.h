// Declares NCCL EP 0.1, as far as the tests call it.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>

inline constexpr unsigned kMagic = 0xc00fffee;
inline constexpr unsigned kTensorMagic = 0xcafecafe;

struct EpTensor {
  unsigned size = sizeof(EpTensor), magic = kTensorMagic, ndim = 0;
  ncclDataType_t datatype = ncclInt8;
  void* data = nullptr;
  ncclWindow_t window = nullptr;
  std::uint64_t offset = 0;
  std::size_t* sizes = nullptr;
};
static_assert(sizeof(EpTensor) == 48);
struct EpTensors {
  unsigned size = sizeof(EpTensors), magic = kMagic;
  EpTensor* tokens = nullptr;
  EpTensor* others[3] = {};
};

using EpGroup = struct EpGroupOf*;
using EpHandle = struct EpHandleOf*;

extern "C" {
ncclResult_t ncclEpCreateGroup(EpGroup*, ncclComm_t, const void* config);
ncclResult_t ncclEpInitHandle(EpHandle*, EpGroup, int layout, const void* config, int topk,
                              const EpTensor* memory);
ncclResult_t ncclEpCreateHandle(EpHandle*, EpGroup, int layout, const EpTensor* topk_index,
                                const void* layout_info, const void* config, cudaStream_t);
ncclResult_t ncclEpDispatch(EpHandle, const EpTensors*, const EpTensors*, const void* layout_info,
                            const void* config, cudaStream_t);
ncclResult_t ncclEpCombine(EpHandle, const EpTensors*, const EpTensors*, const void* config,
                           cudaStream_t);
ncclResult_t ncclEpComplete(EpHandle, const void* config, cudaStream_t);

// Only this library has it: the sum of the arguments that arrived. The next calls have so many.
unsigned long long ep_arguments(int next);
}
