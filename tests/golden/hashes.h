// The hashes of the contract's signatures, written from its page to check the tool's own code
// against.
#pragma once

#include <cstdint>
#include <string_view>

namespace tprof::test {

// The output function of splitmix64.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

constexpr std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}

constexpr std::uint64_t fold_product(std::uint64_t a, std::uint64_t b) {
  __extension__ using Product = unsigned __int128;
  const Product product = Product{a} * b;
  return static_cast<std::uint64_t>(product ^ product >> 64);
}

// Returns what a collective adds to its communicator's signature. dtype: ncclDataType_t's number.
constexpr std::uint64_t mix(std::uint64_t seq, std::uint64_t name, std::uint64_t count,
                            std::uint64_t dtype, std::uint64_t reduction) {
  const std::uint64_t h = fold_product(seq ^ name, count ^ 0x9e3779b97f4a7c15);
  return fold_product(h ^ dtype << 40 ^ reduction << 48 ^ 0xffffffff, 0xbf58476d1ce4e5b9);
}

}  // namespace tprof::test
