// A growing, thread-safe map from 64-bit keys (handles of a library, or code addresses) to values
// of at most a word.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "interpose/base/lock.h"
#include "interpose/base/own_memory.h"

namespace tprof {

// Lookups take no lock; inserting and erasing do. The table is open addressing on anonymous pages,
// at most half full. An outgrown table stays mapped for its readers. Keys 0 and 1 mark slots
// without an entry: no handle or code address has these values.
template <typename Value>
class SharedMap {
  static_assert(std::atomic<Value>::is_always_lock_free);
  struct Slot {
    std::atomic<std::uint64_t> key;
    std::atomic<Value> value;
  };
  struct Table {
    Slot* slot;
    unsigned shift;  // from a hash to a place

    std::size_t last() const { return ~std::uint64_t{0} >> shift; }
    std::size_t place(std::uint64_t key) const { return key * 0x9e3779b97f4a7c15ULL >> shift; }
    // Returns null if the key is not there.
    Slot* slot_of(std::uint64_t key) const {
      if (slot == nullptr || key <= kErased) return nullptr;
      Slot* const first = &slot[place(key)];
      return first->key.load(std::memory_order_acquire) == key ? first : search(key);
    }
    Slot* search(std::uint64_t key) const {
      for (std::size_t i = place(key);; i = (i + 1) & last()) {
        const std::uint64_t at = slot[i].key.load(std::memory_order_acquire);
        if (at == key) return &slot[i];
        if (at == kEmpty) return nullptr;
      }
    }
  };

 public:
  explicit constexpr SharedMap(LockOrder order) : lock_(order) {}

  bool find(std::uint64_t key, Value& value) const {
    const Slot* slot = current().slot_of(key);
    if (slot == nullptr) return false;
    value = slot->value.load(std::memory_order_acquire);
    // It may have been erased meanwhile, and its slot given to another key.
    return slot->key.load(std::memory_order_relaxed) == key;
  }
  // Returns Value{} if the handle is not known.
  Value find(const void* handle) const {
    Value value{};
    return find(reinterpret_cast<std::uintptr_t>(handle), value) ? value : Value{};
  }

  // Replaces the key's earlier value. Returns false if there is no memory.
  bool insert(std::uint64_t key, Value value) {
    const LockGuard guard(lock_);
    if (key <= kErased || (!has_room() && !grow())) return false;
    put(current(), key, value);
    return true;
  }
  bool insert(const void* handle, Value value) {
    return insert(reinterpret_cast<std::uintptr_t>(handle), value);
  }

  void erase(const void* handle) { erase(reinterpret_cast<std::uintptr_t>(handle)); }
  void erase(std::uint64_t key) {
    const LockGuard guard(lock_);
    const Table table = current();
    Slot* slot = table.slot_of(key);
    if (slot == nullptr) return;
    slot->key.store(kErased, std::memory_order_release);
    // Erased slots become empty again if no search goes past them: otherwise handles that come and
    // go would fill the table.
    auto i = static_cast<std::size_t>(slot - table.slot);
    if (table.slot[(i + 1) & table.last()].key.load(std::memory_order_relaxed) != kEmpty) return;
    for (; slot->key.load(std::memory_order_relaxed) == kErased; slot = &table.slot[i]) {
      slot->key.store(kEmpty, std::memory_order_release);
      --used_;
      i = (i - 1) & table.last();
    }
  }

  void clear() {
    const LockGuard guard(lock_);
    const Table table = current();
    for (std::size_t i = 0; table.slot != nullptr && i <= table.last(); ++i) {
      if (table.slot[i].key.load(std::memory_order_relaxed) != kEmpty)
        table.slot[i].key.store(kEmpty, std::memory_order_relaxed);
    }
    used_ = 0;
  }

 private:
  static constexpr std::uint64_t kEmpty = 0;
  static constexpr std::uint64_t kErased = 1;
  static constexpr unsigned kFirstShift = 64 - 8;
  static constexpr std::uintptr_t kBits = 63;  // of table_: a page begins at a multiple

  Table current() const {
    const std::uintptr_t word = table_.load(std::memory_order_acquire);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the pages that grow() got
    return {reinterpret_cast<Slot*>(word & ~kBits), static_cast<unsigned>(word & kBits)};
  }
  bool has_room() const {
    const Table table = current();
    return table.slot != nullptr && 2 * (used_ + 1) <= table.last();
  }

  // Requires a free slot.
  void put(const Table& table, std::uint64_t key, Value value) {
    Slot* slot = table.slot_of(key);
    if (slot == nullptr) {
      std::size_t i = table.place(key);
      while (table.slot[i].key.load(std::memory_order_relaxed) > kErased)
        i = (i + 1) & table.last();
      slot = &table.slot[i];
      if (slot->key.load(std::memory_order_relaxed) == kEmpty) ++used_;
    }
    slot->value.store(value, std::memory_order_release);
    slot->key.store(key, std::memory_order_release);
  }

  bool grow() {
    const Table old = current();
    const Table wide{nullptr, old.slot == nullptr ? kFirstShift : old.shift - 1};
    void* pages = take_memory((wide.last() + 1) * sizeof(Slot));
    if (pages == nullptr) return false;
    const Table table{static_cast<Slot*>(pages), wide.shift};
    used_ = 0;
    for (std::size_t i = 0; old.slot != nullptr && i <= old.last(); ++i) {
      const std::uint64_t key = old.slot[i].key.load(std::memory_order_relaxed);
      if (key > kErased) put(table, key, old.slot[i].value.load(std::memory_order_relaxed));
    }
    table_.store(reinterpret_cast<std::uintptr_t>(pages) | table.shift, std::memory_order_release);
    return true;
  }

  std::atomic<std::uintptr_t> table_{0};
  std::size_t used_ = 0;  // slots that are not empty
  Lock lock_;
};

}  // namespace tprof
