// Data types, numbered as ncclDataType_t (nccl.h 2.32), then our own for copies.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tprof {

// X(name, ncclDataType_t value, bytes per element)
#define TPROF_DTYPES(X) \
  X(int8, 0, 1)         \
  X(uint8, 1, 1)        \
  X(int32, 2, 4)        \
  X(uint32, 3, 4)       \
  X(int64, 4, 8)        \
  X(uint64, 5, 8)       \
  X(float16, 6, 2)      \
  X(float32, 7, 4)      \
  X(float64, 8, 8)      \
  X(bfloat16, 9, 2)     \
  X(float8e4m3, 10, 1)  \
  X(float8e5m2, 11, 1)

struct DtypeInfo {
  std::string_view name;
  std::uint32_t size;  // bytes
};

inline constexpr DtypeInfo kDtypes[] = {
#define X(type, value, bytes) {#type, bytes},
    TPROF_DTYPES(X)
#undef X
};
inline constexpr std::size_t kDtypeCount = sizeof(kDtypes) / sizeof(kDtypes[0]);

#define X(type, value, bytes) static_assert(kDtypes[value].name == #type);
TPROF_DTYPES(X)
#undef X

// Copies carry no type: their element is TPROF_COPY_ELEMENT_SIZE bytes.
inline constexpr std::uint8_t kDtypeByte = 64;
// A type that a newer NCCL added: its calls count, but its size is unknown and stored as 0.
inline constexpr std::uint8_t kDtypeUnknown = 65;

constexpr std::uint8_t dtype_from_nccl(int value) {
  return value >= 0 && static_cast<std::size_t>(value) < kDtypeCount
             ? static_cast<std::uint8_t>(value)
             : kDtypeUnknown;
}

// The sizes of all types, four bits each, so that a call needs no table lookup.
inline constexpr std::uint64_t kDtypeSizes = [] {
  std::uint64_t sizes = 0;
  for (std::size_t i = 0; i < kDtypeCount; ++i) sizes |= std::uint64_t{kDtypes[i].size} << 4 * i;
  return sizes;
}();
static_assert(kDtypeCount <= 16);

constexpr std::uint32_t dtype_size(std::uint8_t dtype) {
  return dtype < kDtypeCount ? kDtypeSizes >> 4 * dtype & 15 : (dtype == kDtypeByte ? 1U : 0U);
}

constexpr std::string_view dtype_name(std::uint8_t dtype, std::uint32_t copy_element_size) {
  if (dtype < kDtypeCount) return kDtypes[dtype].name;
  if (dtype != kDtypeByte) return "unknown";
  constexpr std::string_view kNames[] = {"byte", "byte2", "byte4", "byte8"};
  const int power = std::bit_width(copy_element_size) - 1;
  const bool known = power >= 0 && power < 4 && copy_element_size == 1U << power;
  return kNames[known ? power : 0];
}

}  // namespace tprof
