// A growing array on anonymous pages: no heap, so usable inside the traced process.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "interpose/base/not_copied.h"
#include "interpose/base/own_memory.h"

namespace tprof {

// When memory runs out it takes no more elements, and failed() is true.
template <typename T>
class Pages : NotCopied {
  static_assert(std::is_trivially_copyable_v<T>);
  static constexpr std::size_t kSize = sizeof(T);  // NOLINT(bugprone-sizeof-expression): of any

 public:
  ~Pages() { release(); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  std::size_t size() const { return size_; }
  bool failed() const { return failed_; }
  void clear() { size_ = 0, failed_ = false; }
  void cut(std::size_t size) { size_ = size; }
  void erase_first(std::size_t n) {
    std::copy(begin() + n, end(), begin());
    cut(size_ - n);
  }
  // Removes the elements for which gone(element) is true; calls it once for each, in order.
  template <typename F>
  void erase_if(F&& gone) {
    cut(static_cast<std::size_t>(std::remove_if(begin(), end(), gone) - begin()));
  }
  // Merges neighbours: removes each element that takes(previous, element) has merged into the
  // previous one.
  template <typename F>
  void join(F&& takes) {
    std::size_t kept = 0;
    for (const T& next : *this) {
      if (kept == 0 || !takes(data_[kept - 1], next)) data_[kept++] = next;
    }
    cut(kept);
  }
  void fail() { failed_ = true; }

  void append(const T* from, std::size_t n) {
    if (!reserve(n)) return;
    std::memcpy(data_ + size_, from, n * kSize);
    size_ += n;
  }
  void push_back(const T& value) { append(&value, 1); }

  void release() {
    if (data_ != nullptr) give_back_memory(data_, capacity_ * kSize);
    data_ = nullptr;
    size_ = capacity_ = 0;
  }

 private:
  bool reserve(std::size_t more) {
    if (failed_) return false;
    if (size_ + more <= capacity_) return true;
    constexpr std::size_t kFirst = (std::size_t{64} << 10) / kSize + 1;
    std::size_t capacity = capacity_ == 0 ? kFirst : capacity_ * 2;
    while (capacity < size_ + more) capacity *= 2;
    void* p = data_ == nullptr ? take_memory(capacity * kSize)
                               : grow_memory(data_, capacity_ * kSize, capacity * kSize);
    if (p == nullptr) {
      failed_ = true;
      return false;
    }
    data_ = static_cast<T*>(p);
    capacity_ = capacity;
    return true;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  bool failed_ = false;
};

}  // namespace tprof
