// A growing map from numbers to values on anonymous pages: no heap, so usable inside the traced
// process. One caller at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "interpose/base/own_memory.h"

namespace tprof {

// Open addressing with linear probing, at most half full. Erasing leaves no mark: the entries
// behind move up. Key 0 stands for none. The map is never destroyed: threads outlive exit().
template <typename Value>
class PageMap {
  static_assert(std::is_trivially_copyable_v<Value>);
  struct Slot {
    std::uint64_t key;
    Value value;
  };

 public:
  PageMap() = default;
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;

  // Returns the value, which is valid until the next change. Null: there is none.
  Value* find(std::uint64_t key) {
    if (capacity_ == 0) return nullptr;
    for (std::size_t i = place(key);; i = next(i)) {
      if (slots_[i].key == 0) return nullptr;
      if (slots_[i].key == key) return &slots_[i].value;
    }
  }

  // The key must not be there. False: there is no memory.
  bool insert(std::uint64_t key, const Value& value) {
    if (2 * (size_ + 1) > capacity_ && !grow()) return false;
    put(key, value);
    ++size_;
    return true;
  }

  // The key must be there.
  void erase(std::uint64_t key) {
    std::size_t hole = place(key);
    while (slots_[hole].key != key) hole = next(hole);
    for (std::size_t i = next(hole); slots_[i].key != 0; i = next(i)) {
      // An entry stays if the way from its own place to it does not lead over the hole.
      if (((i - place(slots_[i].key)) & (capacity_ - 1)) < ((i - hole) & (capacity_ - 1))) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole] = {};
    --size_;
  }

  // Erases the entries for which f(key, value) is true.
  template <typename F>
  void erase_if(F&& f) {
    for (std::size_t i = 0; i < capacity_; ++i) {
      while (slots_[i].key != 0 && f(slots_[i].key, slots_[i].value)) erase(slots_[i].key);
    }
  }

  std::size_t size() const { return size_; }

  void release() {
    if (slots_ != nullptr) give_back_memory(slots_, capacity_ * sizeof(Slot));
    slots_ = nullptr;
    size_ = capacity_ = 0;
  }

 private:
  std::size_t place(std::uint64_t key) const {
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15ULL) >> 20) & (capacity_ - 1);
  }
  std::size_t next(std::size_t i) const { return (i + 1) & (capacity_ - 1); }

  void put(std::uint64_t key, const Value& value) {
    std::size_t i = place(key);
    while (slots_[i].key != 0) i = next(i);
    slots_[i] = {key, value};
  }

  bool grow() {
    constexpr std::size_t kFirst = 1024;
    const std::size_t before = capacity_;
    const std::size_t capacity = before == 0 ? kFirst : 2 * before;
    void* p = take_memory(capacity * sizeof(Slot));
    if (p == nullptr) return false;
    Slot* const old = slots_;
    slots_ = static_cast<Slot*>(p);
    capacity_ = capacity;
    for (std::size_t i = 0; i < before; ++i) {
      if (old[i].key != 0) put(old[i].key, old[i].value);
    }
    if (old != nullptr) give_back_memory(old, before * sizeof(Slot));
    return true;
  }

  Slot* slots_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;  // a power of two
};

}  // namespace tprof
