// The numbers that options take.
#pragma once

#include <cstdint>
#include <limits>

namespace CLI {
class Option;
}

namespace tprof::cli {

enum NumbersOf { kAny, kWhole, kSeconds };

// The numbers that an option takes: the least and the most, and how a message shows one.
struct Numbers {
  double least;
  double most;
  const char* example;
  NumbersOf of = kAny;
};

inline constexpr double kNoMost = std::numeric_limits<double>::max();
inline constexpr double kAboveZero = std::numeric_limits<double>::min();
inline constexpr double kMostInt = std::numeric_limits<int>::max();

// Takes nothing else for the option, and says what was expected.
void take(CLI::Option* option, const Numbers& numbers);

}  // namespace tprof::cli
