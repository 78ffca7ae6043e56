// A function of the CUDA driver that we call ourselves.
#pragma once

#include <atomic>

#include "interpose/real/resolve.h"

namespace tprof::resolve {

// Looked up when it is first wanted; null while the process has no driver.
template <typename Type>
class DriverFunction {
 public:
  explicit constexpr DriverFunction(const char* name) : name_(name) {}
  Type* get() {
    Type* found = found_.load(std::memory_order_acquire);
    if (found == nullptr) {
      found = reinterpret_cast<Type*>(mapped(Library::cuda, name_));
      found_.store(found, std::memory_order_release);
    }
    return found;
  }

 private:
  const char* name_;
  std::atomic<Type*> found_{nullptr};
};

}  // namespace tprof::resolve
