// A growing map from 64-bit keys to values of any size, on anonymous pages: no heap, so usable
// inside the traced process. One caller at a time. It is never destroyed: threads outlive exit().
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "interpose/base/own_memory.h"
#include "interpose/base/shared_map.h"

namespace tprof {

// The values lie in places that are used again, and a SharedMap knows the place of each key. Keys
// are as there.
template <typename Value>
class PlaceMap {
  static_assert(std::is_trivially_copyable_v<Value>);
  struct Place {
    std::uint64_t key;  // 0: free
    std::uint32_t next_free;
    Value value;
  };

 public:
  explicit constexpr PlaceMap(LockOrder order) : index_(order) {}

  // Returns the value, which is valid until the next insert(). Null: there is none.
  Value* find(std::uint64_t key) {
    std::uint32_t place = 0;
    return index_.find(key, place) ? &places_[place].value : nullptr;
  }

  // The key must not be there. Null: there is no memory.
  Value* insert(std::uint64_t key, const Value& value) {
    if (free_ == 0 && !grow()) return nullptr;
    const std::uint32_t place = free_;
    if (!index_.insert(key, place)) return nullptr;
    free_ = places_[place].next_free;
    places_[place] = {key, 0, value};
    return &places_[place].value;
  }

  void erase(std::uint64_t key) {
    std::uint32_t place = 0;
    if (!index_.find(key, place)) return;
    index_.erase(key);
    places_[place] = {0, free_, {}};
    free_ = place;
  }

  // Calls f(key, value) for each; it may erase this one.
  template <typename F>
  void each(F&& f) {
    for (std::uint32_t i = 1; i < capacity_; ++i) {
      if (places_[i].key != 0) f(places_[i].key, places_[i].value);
    }
  }

  void clear() {
    index_.clear();
    if (places_ != nullptr) give_back_memory(places_, capacity_ * sizeof(Place));
    places_ = nullptr;
    capacity_ = free_ = 0;
  }

 private:
  // Place 0 is none.
  bool grow() {
    constexpr std::uint32_t kFirst = 1024;
    const std::uint32_t before = capacity_;
    const std::uint32_t capacity = before == 0 ? kFirst : 2 * before;
    void* p = before == 0 ? take_memory(capacity * sizeof(Place))
                          : grow_memory(places_, before * sizeof(Place), capacity * sizeof(Place));
    if (p == nullptr) return false;
    places_ = static_cast<Place*>(p);
    capacity_ = capacity;
    for (std::uint32_t i = capacity - 1; i >= before && i != 0; --i) {
      places_[i] = {0, free_, {}};
      free_ = i;
    }
    return true;
  }

  SharedMap<std::uint32_t> index_;
  Place* places_ = nullptr;
  std::uint32_t capacity_ = 0;
  std::uint32_t free_ = 0;  // a list, linked by `next_free`
};

}  // namespace tprof
