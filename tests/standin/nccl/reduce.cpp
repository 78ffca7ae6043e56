#include "nccl/reduce.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace standin {
namespace {

// Unsigned arithmetic wraps; signed sums and products do too, as on the device.
template <class T>
struct Accumulator {
  using type = float;
};
template <class T>
requires std::is_floating_point_v<T>
struct Accumulator<T> {
  using type = T;
};
template <class T>
requires std::is_integral_v<T>
struct Accumulator<T> {
  using type = T;
};

template <class A>
A combine(ncclRedOp_t op, A a, A b) {
  switch (op) {
    case ncclMin:
      return std::min(a, b);
    case ncclMax:
      return std::max(a, b);
    default:
      break;
  }
  if constexpr (std::is_integral_v<A>) {
    const auto x = static_cast<std::make_unsigned_t<A>>(a);
    const auto y = static_cast<std::make_unsigned_t<A>>(b);
    return static_cast<A>(op == ncclProd ? x * y : x + y);
  } else {
    return op == ncclProd ? a * b : a + b;
  }
}

template <class T>
void reduce_as(ncclRedOp_t op, const std::vector<const void*>& in, void* out, size_t count) {
  using A = typename Accumulator<T>::type;
  for (size_t i = 0; i < count; ++i) {
    A sum = static_cast<A>(static_cast<const T*>(in[0])[i]);
    for (size_t r = 1; r < in.size(); ++r) {
      sum = combine(op, sum, static_cast<A>(static_cast<const T*>(in[r])[i]));
    }
    if (op == ncclAvg) sum = static_cast<A>(sum / static_cast<A>(in.size()));
    static_cast<T*>(out)[i] = static_cast<T>(sum);
  }
}

template <class T>
void scale_as(const void* scalar, const void* in, void* out, size_t count) {
  using A = typename Accumulator<T>::type;
  const A factor = static_cast<A>(*static_cast<const T*>(scalar));
  for (size_t i = 0; i < count; ++i) {
    const A value = static_cast<A>(static_cast<const T*>(in)[i]);
    static_cast<T*>(out)[i] = static_cast<T>(combine(ncclProd, value, factor));
  }
}

template <class Body>
void with_type(ncclDataType_t type, Body body) {
  switch (type) {
    case ncclInt8:
      return body(int8_t{});
    case ncclUint8:
      return body(uint8_t{});
    case ncclInt32:
      return body(int32_t{});
    case ncclUint32:
      return body(uint32_t{});
    case ncclInt64:
      return body(int64_t{});
    case ncclUint64:
      return body(uint64_t{});
    case ncclFloat16:
      return body(__half{});
    case ncclFloat32:
      return body(float{});
    case ncclFloat64:
      return body(double{});
    case ncclBfloat16:
      return body(__nv_bfloat16{});
    case ncclFloat8e4m3:
      return body(__nv_fp8_e4m3{});
    case ncclFloat8e5m2:
      return body(__nv_fp8_e5m2{});
    default:
      return;
  }
}

}  // namespace

size_t size_of(ncclDataType_t type) {
  size_t size = 0;
  with_type(type, [&](auto t) { size = sizeof t; });
  return size;
}

void reduce(ncclDataType_t type, ncclRedOp_t op, const std::vector<const void*>& in, void* out,
            size_t count) {
  with_type(type, [&](auto t) { reduce_as<decltype(t)>(op, in, out, count); });
}

void scale(ncclDataType_t type, const void* scalar, const void* in, void* out, size_t count) {
  with_type(type, [&](auto t) { scale_as<decltype(t)>(scalar, in, out, count); });
}

}  // namespace standin
