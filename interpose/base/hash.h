// The library's hash functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace tprof {

// FNV-1a, 64 bits, of names and texts: equal on all ranks, and a constant if the text is one.
constexpr std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325ULL;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return h;
}

// splitmix64's finaliser (Steele, Lea, Flood 2014): every input bit reaches every output bit.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// The 128 bits of a product, folded to 64 (as in wyhash, Wang Yi 2019).
constexpr std::uint64_t fold_product(std::uint64_t a, std::uint64_t b) {
  __extension__ using Product = unsigned __int128;
  const Product product = static_cast<Product>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

}  // namespace tprof
