#include "live/compact.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "text/text.h"

namespace tprof::live {

std::string compact(double n) {
  if (n < 10'000) return text::thousands(static_cast<std::uint64_t>(std::llround(n)));
  constexpr std::array kUnits = {"k", "M", "G", "T", "P", "E"};
  std::size_t unit = 0;
  for (n /= 1e3; n >= 999.95 && unit + 1 < kUnits.size(); ++unit) n /= 1e3;
  return fmt::format("{:.1f}{}", n, kUnits[unit]);
}

std::string compact_bytes(double n) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  for (; n >= 999.5 && unit + 1 < kUnits.size(); ++unit) n /= 1024;
  return fmt::format("{:.{}f} {}", n,
                     unit == 0 || n >= 99.95 ? 0
                     : n >= 9.995            ? 1
                                             : 2,
                     kUnits[unit]);
}

std::string compact_time(std::int64_t ns) {
  const double s = static_cast<double>(ns) / 1e9;
  return s >= 99.5   ? fmt::format("{:.0f} s", s)
         : s >= 0.99 ? fmt::format("{:.2f} s", s)
         : s >= 1e-3 ? fmt::format("{:.0f} ms", s * 1e3)
                     : fmt::format("{:.0f} us", s * 1e6);
}

}  // namespace tprof::live
