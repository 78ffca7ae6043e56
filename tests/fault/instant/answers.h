// Functions of a library that do nothing: each returns an answer.
#pragma once

#define ANSWERS(answer, type, name, ...) \
  type name(__VA_ARGS__);                \
  type name(__VA_ARGS__) {               \
    return answer;                       \
  }
#define DRIVER_ANSWERS(name, ...) ANSWERS(CUDA_SUCCESS, CUresult, name, __VA_ARGS__)
#define RUNTIME_ANSWERS(name, ...) ANSWERS(cudaSuccess, cudaError_t, name, __VA_ARGS__)
