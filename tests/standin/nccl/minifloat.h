// IEEE-like floats narrower than float: conversion with rounding to nearest even.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace standin {

// The 8-bit types saturate, as CUDA's __nv_fp8_e4m3(float) and __nv_fp8_e5m2(float) do. A `kFinite`
// type has no infinities and one NaN pattern, and uses the largest exponent for numbers (OCP 8-bit
// E4M3).
template <class Bits, int kExponent, int kMantissa, bool kSaturate = false, bool kFinite = false>
struct Minifloat {
  Bits bits;

  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr unsigned kTop = (1U << kExponent) - 1;
  static constexpr unsigned kFraction = (1U << kMantissa) - 1;

  Minifloat() = default;
  explicit Minifloat(float value) : bits(encode(value)) {}

  explicit operator float() const {
    const unsigned exponent = (static_cast<unsigned>(bits) >> kMantissa) & kTop;
    const unsigned fraction = static_cast<unsigned>(bits) & kFraction;
    const bool negative = (static_cast<unsigned>(bits) >> (kExponent + kMantissa)) & 1;
    float value;
    if (exponent == kTop && (kFinite ? fraction == kFraction : fraction != 0)) {
      value = std::numeric_limits<float>::quiet_NaN();
    } else if (exponent == kTop && !kFinite) {
      value = std::numeric_limits<float>::infinity();
    } else if (exponent == 0) {
      value = std::ldexp(static_cast<float>(fraction), 1 - kBias - kMantissa);
    } else {
      value = std::ldexp(static_cast<float>(fraction | (1U << kMantissa)),
                         static_cast<int>(exponent) - kBias - kMantissa);
    }
    return negative ? -value : value;
  }

 private:
  static Bits encode(float value) {
    const unsigned sign = std::signbit(value) ? 1U << (kExponent + kMantissa) : 0;
    const unsigned nan = (kTop << kMantissa) | kFraction;
    if (std::isnan(value)) return static_cast<Bits>(sign | nan);
    if (value == 0) return static_cast<Bits>(sign);
    const unsigned infinity = kTop << kMantissa;
    const unsigned largest = kFinite ? nan - 1 : kSaturate ? infinity - 1 : infinity;
    if (std::isinf(value)) return static_cast<Bits>(sign | largest);
    // Counts units of the last place at this exponent. nearbyint rounds to nearest even, and a
    // carry into the exponent is right by itself in this encoding.
    int exponent = 0;
    std::frexp(value, &exponent);
    const int place = std::max(exponent - 1, 1 - kBias);
    const auto units =
        static_cast<unsigned>(std::nearbyint(std::ldexp(std::fabs(value), kMantissa - place)));
    const unsigned base = static_cast<unsigned>(place + kBias - 1) << kMantissa;
    return static_cast<Bits>(sign | std::min(base + units, largest));
  }
};

using Half = Minifloat<uint16_t, 5, 10>;
using Bfloat16 = Minifloat<uint16_t, 8, 7>;
using Float8E4m3 = Minifloat<uint8_t, 4, 3, true, true>;
using Float8E5m2 = Minifloat<uint8_t, 5, 2, true>;

}  // namespace standin
