// Real numbers as JSON has them, whatever the program's locale has for a point.
#pragma once

#include <clocale>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "interpose/base/text.h"

namespace tprof {

// Writes as many digits as it takes to read the same number back; null if it is not a number, or is
// infinite.
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
