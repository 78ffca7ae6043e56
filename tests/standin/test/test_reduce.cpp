// The arithmetic of the reductions, against CUDA's own types and plain loops.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "nccl/reduce.h"
#include "test/catch.h"

using namespace standin;

namespace {

// Converts through CUDA's own types, with which the test writes inputs and reads results.
template <class T>
T from_double(double value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(value);
  } else {
    return T(static_cast<float>(value));
  }
}
template <class T>
double to_double(T value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(value);
  } else {
    return static_cast<double>(static_cast<float>(value));
  }
}

double expected(ncclRedOp_t op, const std::vector<double>& in) {
  double result = in[0];
  for (size_t r = 1; r < in.size(); ++r) {
    if (op == ncclProd) result *= in[r];
    if (op == ncclMin) result = std::min(result, in[r]);
    if (op == ncclMax) result = std::max(result, in[r]);
    if (op == ncclSum || op == ncclAvg) result += in[r];
  }
  return op == ncclAvg ? result / static_cast<double>(in.size()) : result;
}

// Small whole numbers: every result can be represented in every type, so equality is exact.
template <class T>
void check_all_reductions(ncclDataType_t type) {
  INFO("dtype " << type);
  REQUIRE(size_of(type) == sizeof(T));
  constexpr size_t kCount = 100;
  for (ncclRedOp_t op : {ncclSum, ncclProd, ncclMin, ncclMax, ncclAvg}) {
    for (size_t ranks : {1U, 2U, 4U}) {
      INFO("op " << op << ", " << ranks << " ranks");
      std::vector<std::vector<T>> in(ranks, std::vector<T>(kCount));
      std::vector<std::vector<double>> values(kCount);
      for (size_t i = 0; i < kCount; ++i) {
        for (size_t r = 0; r < ranks; ++r) {
          // 4 times a number, so that the average of up to 4 ranks is whole too.
          const double value = op == ncclProd ? static_cast<double>(1 + (i + r) % 2)
                                              : static_cast<double>((i + r) % 2 * 4);
          in[r][i] = from_double<T>(value);
          values[i].push_back(value);
        }
      }
      std::vector<const void*> inputs;
      inputs.reserve(ranks);
      for (const auto& v : in) inputs.push_back(v.data());
      std::vector<T> out(kCount);
      reduce(type, op, inputs, out.data(), kCount);
      for (size_t i = 0; i < kCount; ++i) REQUIRE(to_double(out[i]) == expected(op, values[i]));
    }
  }
}

}  // namespace

TEST_CASE("sum, prod, min, max and avg are right in every type") {
  check_all_reductions<int8_t>(ncclInt8);
  check_all_reductions<uint8_t>(ncclUint8);
  check_all_reductions<int32_t>(ncclInt32);
  check_all_reductions<uint32_t>(ncclUint32);
  check_all_reductions<int64_t>(ncclInt64);
  check_all_reductions<uint64_t>(ncclUint64);
  check_all_reductions<float>(ncclFloat32);
  check_all_reductions<double>(ncclFloat64);
  check_all_reductions<__half>(ncclFloat16);
  check_all_reductions<__nv_bfloat16>(ncclBfloat16);
  check_all_reductions<__nv_fp8_e4m3>(ncclFloat8e4m3);
  check_all_reductions<__nv_fp8_e5m2>(ncclFloat8e5m2);
}

TEST_CASE("64-bit integers keep all their bits, which a double would not") {
  const int64_t a = (int64_t{1} << 60) + 1, b = 2;
  int64_t out = 0;
  reduce(ncclInt64, ncclSum, {&a, &b}, &out, 1);
  REQUIRE(out == (int64_t{1} << 60) + 3);
  reduce(ncclInt64, ncclMax, {&b, &a}, &out, 1);
  REQUIRE(out == a);
}
