// A map in which every line looks for its key, of which a rank has few.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interpose/base/hash.h"
#include "text/kept.h"

namespace tprof::run {

// The hash of a key's parts.
inline std::uint64_t part_of_hash(const text::Kept& text) {
  return std::bit_cast<std::uintptr_t>(&text.str());
}
inline std::uint64_t part_of_hash(std::int64_t number) {
  return static_cast<std::uint64_t>(number);
}
template <typename... Parts>
std::uint64_t hash_of(const Parts&... parts) {
  std::uint64_t hash = 0;
  ((hash = (hash ^ part_of_hash(parts)) * 0x9e3779b97f4a7c15, hash ^= hash >> 32), ...);
  return hash;
}

// Key::hash() tells keys apart; one that was found before is found again without a search.
template <typename Key, typename Value>
class Known {
 public:
  // Makes it if there is none.
  Value& operator[](const Key& key) {
    if (places_.empty()) places_.resize(64);
    Place& place = places_[key.hash() % 64];
    if (place == nullptr || !(place->first == key)) place = &*all_.try_emplace(key).first;
    return place->second;
  }
  std::map<Key, Value> take() {
    places_ = std::vector<Place>();  // {} would keep its room
    return std::exchange(all_, {});
  }

 private:
  using Place = std::pair<const Key, Value>*;
  std::map<Key, Value> all_;
  std::vector<Place> places_;
};

}  // namespace tprof::run
