// A small transformer, and what it moves.
#pragma once

#include <string>

#include "budget/budget.h"

namespace tprof::test {

using namespace tprof::budget;

// The transformer of PyTorch's tests: 2 layers of 3,216 parameters, and 416 outside of them.
inline Model toy(Way way) {
  return {.ways = {way},
          .params = 6848,
          .root_params = 416,
          .layers = 2,
          .dtype = "float32",
          .reduce_dtype = "float32",
          .shards = 2};
}

inline Key key(Bucket bucket, const std::string& dtype = "float32") {
  return {bucket, "nccl", dtype, 2, 20};
}

// FSDP moves this for toy(): 5 gathers of 2 x 3,216 twice and 416 once, 3 reduce-scatters.
inline Figures fsdp_figures() {
  return {{key(Bucket::ALLGATHER), {5, 13280 * 4, 13280}},
          {key(Bucket::RESHARDING), {3, 6848 * 4, 6848}}};
}

}  // namespace tprof::test
