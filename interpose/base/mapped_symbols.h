// Finds functions of mapped objects by their own symbol tables: when nothing may be opened, so that
// there is no handle for dlsym, and to find dlsym itself.
//
// Other preloads may wrap dlsym and dlopen, and return their own functions for any handle, or none.
// So we ask the dynamic linker itself.
#pragma once

#include <atomic>

struct link_map;

namespace tprof {

// Returns "" if it has none.
const char* soname_of(const link_map& map);

// Returns the function `name` of the object at `address`, else of an object that this one is linked
// to, or null.
void* symbol_near(const void* address, const char* name);

// Returns the function `name` of the first object after this library that has it, or null: as
// dlsym(RTLD_NEXT), to find dlsym. It calls nothing that a sanitizer intercepts, since the
// sanitizer's first call of dlsym comes before its interceptors work.
void* next_symbol(const char* name);

// Returns the function `name` of the object at `address`, or null.
void* symbol_beside(const void* address, const char* name);

// True if the address lies in an object that comes before this library: the program, or a preload.
bool is_before_us(const void* address);

// A function that `kFind` looks up on first use.
template <typename Function, void* (*kFind)(const char*) = next_symbol>
class FunctionOnDemand {
 public:
  explicit constexpr FunctionOnDemand(const char* name) : name_(name) {}
  Function get() {
    Function found = found_.load(std::memory_order_acquire);
    if (found == nullptr) [[unlikely]] {
      found = reinterpret_cast<Function>(kFind(name_));
      found_.store(found, std::memory_order_release);
    }
    return found;
  }

 private:
  const char* name_;
  std::atomic<Function> found_{nullptr};
};

// Returns the function `name` of the mapped object whose soname is `soname`, or null.
void* symbol_in(const char* soname, const char* name);

// The dynamic linker's own, as this library calls them.
namespace loader {
auto own_dlsym() -> void* (*)(void*, const char*);
void* dlsym(void* handle, const char* name);
void* dlopen(const char* file, int flags);
}  // namespace loader

}  // namespace tprof
