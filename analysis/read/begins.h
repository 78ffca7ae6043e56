// Comparing texts with literals: they are short, and each line is compared with several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tprof::read {

inline std::uint64_t word_at(const char* at) {
  std::uint64_t eight = 0;
  std::memcpy(&eight, at, 8);
  return eight;
}

template <std::size_t N>
bool equal(const char* a, const char* b) {
  if constexpr (N >= 8) {
    return word_at(a) == word_at(b) && equal<N - 8>(a + 8, b + 8);
  } else {
    return std::memcmp(a, b, N) == 0;
  }
}

template <std::size_t N>
bool begins(std::string_view text, const char (&literal)[N]) {
  return text.size() >= N - 1 && equal<N - 1>(text.data(), literal);
}

}  // namespace tprof::read
