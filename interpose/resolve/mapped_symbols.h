// Functions of mapped objects, found by their own symbol tables: where nothing may be opened, so
// that there is no handle for dlsym, and where it is dlsym that is looked for.
#pragma once

#include <atomic>

struct link_map;

namespace tprof::resolve {

// "" where it has none.
const char* soname_of(const link_map& map);

// The function `name` of the object that `address` lies in, else of one that this object is linked
// to, or null.
void* symbol_near(const void* address, const char* name);

// The function `name` of the first object behind this library, or null: what dlsym(RTLD_NEXT) would
// give, for finding dlsym. Calls nothing that a sanitizer intercepts: its first own call of dlsym
// comes before its interceptors work.
void* symbol_behind_us(const char* name);

// One of them, looked for when it is first wanted.
template <typename Function>
class BehindUs {
 public:
  explicit constexpr BehindUs(const char* name) : name_(name) {}
  Function get() {
    Function found = found_.load(std::memory_order_acquire);
    if (found == nullptr) [[unlikely]] {
      found = reinterpret_cast<Function>(symbol_behind_us(name_));
      found_.store(found, std::memory_order_release);
    }
    return found;
  }

 private:
  const char* name_;
  std::atomic<Function> found_{nullptr};
};

// The function `name` of the mapped object whose soname is `soname`, or null.
void* symbol_in(const char* soname, const char* name);

}  // namespace tprof::resolve
