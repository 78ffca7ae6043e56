// Real numbers in JSON, independent of the decimal point of the program's locale.
#pragma once

#include <clocale>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "interpose/base/text.h"

namespace tprof {

// Writes as many digits as are needed to read the same number back; null for NaN and infinities.
inline Text& put_real(Text& out, double v) {
  if (!std::isfinite(v)) return out << "null";
  // This locale is glibc's own: nothing is allocated.
  const locale_t before = uselocale(newlocale(LC_ALL_MASK, "C", nullptr));
  char digits[32];
  for (int precision = 15; precision <= 17; ++precision) {
    std::snprintf(digits, sizeof digits, "%.*g", precision, v);
    if (std::strtod(digits, nullptr) == v) break;
  }
  uselocale(before);
  return out << digits;
}

}  // namespace tprof
