// A map for few keys that is searched once for each line.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "text/kept.h"

namespace tprof::run {

// The hash of a key's parts: numbers, kept texts, tuples of these, and types with a hash().
template <typename... Parts>
std::uint64_t hash_of(const Parts&... parts);

template <typename Part>
std::uint64_t part_of_hash(const Part& part) {
  if constexpr (requires { part.hash(); }) {
    return part.hash();
  } else if constexpr (requires { std::tuple_size<Part>::value; }) {
    return std::apply([](const auto&... parts) { return hash_of(parts...); }, part);
  } else if constexpr (std::is_same_v<Part, text::Kept>) {
    return std::bit_cast<std::uintptr_t>(&part.str());
  } else {
    return static_cast<std::uint64_t>(part);
  }
}

template <typename... Parts>
std::uint64_t hash_of(const Parts&... parts) {
  std::uint64_t hash = 0;
  ((hash = (hash ^ part_of_hash(parts)) * 0x9e3779b97f4a7c15, hash ^= hash >> 32), ...);
  return hash;
}

// A key is a tuple or has a hash(). A key that was found lately is found again without a search.
template <typename Key, typename Value>
class Known {
 public:
  // Makes it if there is none.
  Value& operator[](const Key& key) {
    if (places_.empty()) places_.resize(64);
    Place& place = places_[part_of_hash(key) % 64];
    if (place == nullptr || !(place->first == key)) place = &*all_.try_emplace(key).first;
    return place->second;
  }
  std::map<Key, Value> take() {
    places_ = std::vector<Place>();  // {} would keep the capacity
    return std::exchange(all_, {});
  }

 private:
  using Place = std::pair<const Key, Value>*;
  std::map<Key, Value> all_;
  std::vector<Place> places_;
};

}  // namespace tprof::run
