// Makes every choice of a random program: the same seed gives the same choices.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {  // splitmix64
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }
  bool chance(unsigned percent) { return below(100) < percent; }
  // Every magnitude up to `most` is as likely as any other, and so is 0.
  std::size_t size(std::size_t most) {
    const std::size_t bits = below(static_cast<std::size_t>(std::bit_width(most)) + 1);
    if (bits == 0) return 0;
    const std::size_t least = std::size_t{1} << (bits - 1);
    return std::min(most, least + below(least));
  }
  template <class T, std::size_t kCount>
  const T& one_of(const T (&choices)[kCount]) {
    return choices[below(kCount)];
  }

 private:
  std::uint64_t state_;
};
