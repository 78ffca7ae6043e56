#include "interpose/base/mapped_symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <span>

#include "interpose/base/loaded_objects.h"

#pragma weak dladdr1  // musl lacks it

namespace tprof {
namespace {

// Not strcmp: while dlsym is looked up, that may be a sanitizer's, which is not ready yet.
bool same(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

// Reads an object's dynamic section.
class Object {
 public:
  explicit Object(const dl_phdr_info& info) : base_(info.dlpi_addr), listed_(&info) {
    for (const auto& segment : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
      if (segment.p_type == PT_DYNAMIC) dynamic_ = at<Elf64_Dyn>(segment.p_vaddr);
    }
    find_tables();
  }
  explicit Object(const link_map& map) : base_(map.l_addr), dynamic_(map.l_ld) { find_tables(); }

  bool holds(const void* address) const {
    return listed_ != nullptr && tprof::holds(*listed_, reinterpret_cast<std::uintptr_t>(address));
  }

  const char* soname() const {
    const char* own = "";
    each(DT_SONAME, [&](const char* name) { return own = name, true; });
    return own;
  }
  bool is_named(const char* soname) const { return same(this->soname(), soname); }
  bool needs(const Object& other) const {
    return each(DT_NEEDED, [&](const char* name) { return other.is_named(name); });
  }

  // Searches the GNU hash table, which all linkers write. It ignores symbol versions: NCCL and the
  // CUDA runtime have one of each symbol.
  void* find(const char* name) const {
    if (symbols_ == nullptr || strings_ == nullptr || hash_ == nullptr) return nullptr;
    const std::uint32_t buckets = hash_[0];
    const std::uint32_t first = hash_[1];
    const std::uint32_t bloom_words = hash_[2];
    if (buckets == 0) return nullptr;
    const std::uint32_t* bucket = hash_ + 4 + bloom_words * (sizeof(Elf64_Addr) / sizeof *hash_);
    const std::uint32_t* chain = bucket + buckets;
    std::uint32_t hash = 5381;
    for (const char* c = name; *c != '\0'; ++c) hash = hash * 33 + static_cast<unsigned char>(*c);
    std::uint32_t i = bucket[hash % buckets];
    if (i < first) return nullptr;
    for (;; ++i) {
      const std::uint32_t its = chain[i - first];
      const auto& symbol = symbols_[i];
      if ((its | 1) == (hash | 1) && symbol.st_shndx != SHN_UNDEF &&
          (symbol.st_info & 0xf) == STT_FUNC && same(strings_ + symbol.st_name, name)) {
        return const_cast<char*>(at<char>(symbol.st_value));
      }
      if ((its & 1) != 0) return nullptr;
    }
  }

 private:
  void find_tables() {
    if (dynamic_ == nullptr) return;
    symbols_ = table<Elf64_Sym>(DT_SYMTAB);
    strings_ = table<char>(DT_STRTAB);
    hash_ = table<std::uint32_t>(DT_GNU_HASH);
  }

  template <typename T>
  const T* at(Elf64_Addr offset) const {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader gives addresses as numbers
    return reinterpret_cast<const T*>(base_ + offset);
  }
  // glibc relocates these entries if the section is writable.
  template <typename T>
  const T* table(Elf64_Sxword tag) const {
    for (const Elf64_Dyn* d = dynamic_; d->d_tag != DT_NULL; ++d) {
      if (d->d_tag != tag) continue;
      const Elf64_Addr p = d->d_un.d_ptr;
      return at<T>(p < base_ ? p : p - base_);
    }
    return nullptr;
  }
  template <typename F>
  bool each(Elf64_Sxword tag, F&& f) const {
    if (dynamic_ == nullptr || strings_ == nullptr) return false;
    for (const Elf64_Dyn* d = dynamic_; d->d_tag != DT_NULL; ++d) {
      if (d->d_tag == tag && f(strings_ + d->d_un.d_val)) return true;
    }
    return false;
  }

  Elf64_Addr base_;
  const dl_phdr_info* listed_ = nullptr;  // null: not from the loader's list of segments
  const Elf64_Dyn* dynamic_ = nullptr;
  const Elf64_Sym* symbols_ = nullptr;
  const char* strings_ = nullptr;
  const std::uint32_t* hash_ = nullptr;
};

// Calls f(object) until it returns true.
template <typename F>
void each_object(F&& f) {
  each_loaded_object([&](const dl_phdr_info& info) { return f(Object(info)); });
}

// Returns the function `name` of the first object with it for which wanted(object) is true, or
// null.
template <typename F>
void* find_where(const char* name, F&& wanted) {
  void* found = nullptr;
  each_object([&](const Object& object) {
    if (wanted(object)) found = object.find(name);
    return found != nullptr;
  });
  return found;
}

constexpr char g_here = 0;  // in this library

// Null: not known.
const link_map* map_of(const void* address) {
  Dl_info info;
  link_map* map = nullptr;
  const int known = dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP);
  return known == 0 ? nullptr : map;
}

// Before glibc 2.34 the dynamic linker's functions were in a separate library.
void* symbol_of_libc(const char* name) {
  const link_map* map = dladdr1 == nullptr ? nullptr : map_of(&g_here);
  while (map != nullptr && map->l_prev != nullptr) map = map->l_prev;
  void* found = nullptr;
  for (; found == nullptr && map != nullptr; map = map->l_next) {
    const Object object(*map);
    if (object.is_named("libc.so.6") || object.is_named("libdl.so.2")) found = object.find(name);
  }
  return found;
}

// With musl our place in its list of objects is unknown, so this searches every object except this
// library.
void* symbol_elsewhere(const char* name) {
  return find_where(name, [](const Object& object) { return !object.holds(&g_here); });
}

}  // namespace

const char* soname_of(const link_map& map) {
  return Object(map).soname();
}

void* symbol_near(const void* address, const char* name) {
  void* found = nullptr;
  each_object([&](const Object& caller) {
    if (!caller.holds(address)) return false;
    found = caller.find(name);
    if (found == nullptr) {
      found = find_where(name, [&](const Object& other) { return caller.needs(other); });
    }
    return true;
  });
  return found;
}

void* symbol_beside(const void* address, const char* name) {
  return find_where(name, [&](const Object& object) { return object.holds(address); });
}

void* next_symbol(const char* name) {
  if (dladdr1 == nullptr) return symbol_elsewhere(name);
  const link_map* map = map_of(&g_here);
  void* found = nullptr;
  while (found == nullptr && map != nullptr && (map = map->l_next) != nullptr) {
    found = Object(*map).find(name);
  }
  return found;
}

bool is_before_us(const void* address) {
  if (dladdr1 == nullptr) return false;
  const link_map* const its = map_of(address);
  const link_map* map = map_of(&g_here);
  while (map != nullptr && map != its) map = map->l_prev;
  return map != nullptr;
}

namespace loader {

auto own_dlsym() -> void* (*)(void*, const char*) {
  static constinit FunctionOnDemand<void* (*)(void*, const char*), symbol_of_libc> own("dlsym");
  const auto function = own.get();
  return function != nullptr ? function : &::dlsym;
}

void* dlsym(void* handle, const char* name) {
  return own_dlsym()(handle, name);
}

void* dlopen(const char* file, int flags) {
  static constinit FunctionOnDemand<void* (*)(const char*, int), symbol_of_libc> own("dlopen");
  const auto function = own.get();
  return function != nullptr ? function(file, flags) : ::dlopen(file, flags);
}

}  // namespace loader

void* symbol_in(const char* soname, const char* name) {
  return find_where(name, [&](const Object& object) { return object.is_named(soname); });
}

}  // namespace tprof
