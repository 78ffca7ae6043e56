// The counts of calls, by their kind.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>

#include "interpose/format/buckets.h"

namespace tprof::budget {

struct Key {
  Bucket bucket = Bucket::ALLGATHER;
  std::string function;
  std::string dtype;
  std::int64_t nranks = 0;        // 0: a copy
  std::int64_t bytes_class = -1;  // of each call: from 2^class bytes on, -1: 0 bytes

  auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr)
};

// The counts of one step: means may be broken numbers.
struct Moved {
  double calls = 0;
  double bytes = 0;
  double elements = 0;

  auto operator<=>(const Moved&) const = default;  // NOLINT(modernize-use-nullptr)
  Moved& operator+=(const Moved& m) {
    return *this = {calls + m.calls, bytes + m.bytes, elements + m.elements};
  }
  Moved& operator-=(const Moved& m) {
    return *this = {calls - m.calls, bytes - m.bytes, elements - m.elements};
  }
  Moved operator/(double n) const { return {calls / n, bytes / n, elements / n}; }
};
using Figures = std::map<Key, Moved>;

// Returns the same function and type, on any communicator and of any size.
inline Key kind_of(const Key& key) {
  return {.bucket = key.bucket, .function = key.function, .dtype = key.dtype};
}

// Adds what passes, by kind.
template <typename Passes>
Figures by_kind(const Figures& figures, const Passes& passes) {
  Figures kinds;
  for (const auto& [key, moved] : figures) {
    if (passes(key)) kinds[kind_of(key)] += moved;
  }
  std::erase_if(kinds, [](const auto& kind) { return kind.second == Moved{}; });
  return kinds;
}

}  // namespace tprof::budget
