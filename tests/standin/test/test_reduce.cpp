// The arithmetic of the reductions, against CUDA's own types and plain loops.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cmath>
#include <cstring>
#include <random>

#include "nccl/minifloat.h"
#include "nccl/reduce.h"
#include "test/catch.h"

using namespace standin;

namespace {

// Converts through CUDA's own types, with which the test writes inputs and reads results.
template <class T>
T from_double(double value) {
  return static_cast<T>(value);
}
template <>
__half from_double(double value) {
  return __float2half(static_cast<float>(value));
}
template <>
__nv_bfloat16 from_double(double value) {
  return __float2bfloat16(static_cast<float>(value));
}
template <>
__nv_fp8_e4m3 from_double(double value) {
  return __nv_fp8_e4m3(static_cast<float>(value));
}
template <>
__nv_fp8_e5m2 from_double(double value) {
  return __nv_fp8_e5m2(static_cast<float>(value));
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

template <class Ours, class Theirs>
void check_conversions() {
  using Bits = decltype(Ours::bits);
  for (unsigned pattern = 0; pattern <= std::numeric_limits<Bits>::max(); ++pattern) {
    Ours ours;
    Theirs theirs;
    ours.bits = static_cast<Bits>(pattern);
    std::memcpy(static_cast<void*>(&theirs), &ours.bits, sizeof theirs);
    const auto a = static_cast<float>(ours), b = static_cast<float>(theirs);
    if (!(std::isnan(a) && std::isnan(b)) && a != b) FAIL("pattern " << pattern << ": " << a);
  }
  std::vector<float> values = {0, -0.0F, 1e-45F, 3e38F, std::numeric_limits<float>::infinity()};
  std::mt19937 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const auto pattern = static_cast<uint32_t>(random());
    float value;
    std::memcpy(&value, &pattern, sizeof value);
    if (!std::isnan(value)) values.push_back(value);
    values.push_back(static_cast<float>(pattern) / 4e6F);  // more in the common range
  }
  for (float value : values) {
    const Theirs theirs(value);
    Bits bits;
    std::memcpy(&bits, &theirs, sizeof bits);
    if (Ours(value).bits != bits) FAIL(value << ": " << +Ours(value).bits << " and not " << +bits);
  }
}

}  // namespace

TEST_CASE("sum, prod, min, max and avg are right in every integer type") {
  check_all_reductions<int8_t>(ncclInt8);
  check_all_reductions<uint8_t>(ncclUint8);
  check_all_reductions<int32_t>(ncclInt32);
  check_all_reductions<uint32_t>(ncclUint32);
  check_all_reductions<int64_t>(ncclInt64);
  check_all_reductions<uint64_t>(ncclUint64);
}

TEST_CASE("sum, prod, min, max and avg are right in every floating-point type") {
  check_all_reductions<float>(ncclFloat32);
  check_all_reductions<double>(ncclFloat64);
  check_all_reductions<__half>(ncclFloat16);
  check_all_reductions<__nv_bfloat16>(ncclBfloat16);
  check_all_reductions<__nv_fp8_e4m3>(ncclFloat8e4m3);
  check_all_reductions<__nv_fp8_e5m2>(ncclFloat8e5m2);
}

TEST_CASE("small floats convert bit for bit as CUDA's types do") {
  check_conversions<Half, __half>();
  check_conversions<Bfloat16, __nv_bfloat16>();
  check_conversions<Float8E4m3, __nv_fp8_e4m3>();
  check_conversions<Float8E5m2, __nv_fp8_e5m2>();
}

TEST_CASE("64-bit integers keep all their bits, which a double would not") {
  const int64_t a = (int64_t{1} << 60) + 1, b = 2;
  int64_t out = 0;
  reduce(ncclInt64, ncclSum, {&a, &b}, &out, 1);
  REQUIRE(out == (int64_t{1} << 60) + 3);
  reduce(ncclInt64, ncclMax, {&b, &a}, &out, 1);
  REQUIRE(out == a);
}
