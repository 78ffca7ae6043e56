// Finds functions of mapped objects by their own symbol tables. It is for when nothing may be
// opened, so that there is no handle for dlsym, and for finding dlsym itself.
//
// Other preloads may have a dlsym and a dlopen as well, which answer as they think right for the
// program: with functions of theirs, whatever handle they are asked, or with none. So we ask the
// dynamic linker itself.
#pragma once

#include <atomic>

struct link_map;

namespace tprof {

// Returns "" if it has none.
const char* soname_of(const link_map& map);

// Returns the function `name` of the object that `address` lies in, else of one that this object is
// linked to, or null.
void* symbol_near(const void* address, const char* name);

// Returns the function `name` of the first object behind this library that has it, or null. This is
// what dlsym(RTLD_NEXT) would give, and serves to find dlsym. It calls nothing that a sanitizer
// intercepts: the sanitizer's own first call of dlsym comes before its interceptors work.
void* symbol_behind_us(const char* name);

// Returns the function `name` of the object that the address lies in, or null.
void* symbol_beside(const void* address, const char* name);

// True if the address lies in an object that comes before this library: the program, or a preload.
bool is_before_us(const void* address);

// A function that `kFind` finds, looked for when it is first wanted.
template <typename Function, void* (*kFind)(const char*) = symbol_behind_us>
class BehindUs {
 public:
  explicit constexpr BehindUs(const char* name) : name_(name) {}
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
