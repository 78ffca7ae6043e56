// Reads an object that its owning thread may be writing at this moment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tprof {

// Copies an object word by word while its owner may be changing it. The copy is valid only once the
// caller has checked, by the owner's `committed` or by copying again, that the object did not
// change. The owner is on the hot path and uses plain stores. This is the one deliberate race with
// it, and is hidden from ThreadSanitizer.
template <typename T>
__attribute__((no_sanitize("thread"))) inline T copy_in_use(const T& from) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(std::uint64_t) == 0 &&
                alignof(T) >= alignof(std::uint64_t));
  using Word [[gnu::may_alias]] = std::uint64_t;
  const auto* at = reinterpret_cast<const volatile Word*>(&from);
  std::uint64_t words[sizeof(T) / sizeof(Word)]{};
  for (std::size_t i = 0; i < sizeof(T) / sizeof(Word); ++i) words[i] = at[i];
  T to;
  std::memcpy(&to, words, sizeof to);
  return to;
}

}  // namespace tprof
