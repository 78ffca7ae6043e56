// The arithmetic of ncclAllReduce, ncclReduceScatter and ncclReduce, element by element.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <vector>

namespace standin {

size_t size_of(ncclDataType_t type);  // 0: no such type

// out[i] = in[0][i] op in[1][i] op …; ncclAvg divides the sum by the number of inputs. Small floats
// are accumulated in float and rounded once.
void reduce(ncclDataType_t type, ncclRedOp_t op, const std::vector<const void*>& in, void* out,
            size_t count);

// out[i] = in[i] * scalar, the first half of ncclRedOpCreatePreMulSum.
void scale(ncclDataType_t type, const void* scalar, const void* in, void* out, size_t count);

}  // namespace standin
