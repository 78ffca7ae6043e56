#include "mapped_symbols.h"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>

namespace tprof::resolve {
namespace {

// What its dynamic section tells of an object.
class Object {
 public:
  explicit Object(const dl_phdr_info& info) : info_(info) {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      if (info.dlpi_phdr[i].p_type == PT_DYNAMIC)
        dynamic_ = at<ElfW(Dyn)>(info.dlpi_phdr[i].p_vaddr);
    }
    if (dynamic_ == nullptr) return;
    symbols_ = table<ElfW(Sym)>(DT_SYMTAB);
    strings_ = table<char>(DT_STRTAB);
    hash_ = table<std::uint32_t>(DT_GNU_HASH);
  }

  bool holds(const void* address) const {
    const auto here = reinterpret_cast<std::uintptr_t>(address) - info_.dlpi_addr;
    for (int i = 0; i < info_.dlpi_phnum; ++i) {
      const auto& segment = info_.dlpi_phdr[i];
      if (segment.p_type == PT_LOAD && here - segment.p_vaddr < segment.p_memsz) return true;
    }
    return false;
  }

  bool is_named(const char* soname) const {
    return each(DT_SONAME, [&](const char* own) { return std::strcmp(own, soname) == 0; });
  }
  bool needs(const Object& other) const {
    return each(DT_NEEDED, [&](const char* name) { return other.is_named(name); });
  }

  // By the GNU hash table, which all linkers write. A symbol's last version is enough: NCCL and the
  // CUDA runtime have one of each.
  void* find(const char* name) const {
    if (symbols_ == nullptr || strings_ == nullptr || hash_ == nullptr) return nullptr;
    const std::uint32_t buckets = hash_[0];
    const std::uint32_t first = hash_[1];
    const std::uint32_t bloom_words = hash_[2];
    if (buckets == 0) return nullptr;
    const std::uint32_t* bucket = hash_ + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof *hash_);
    const std::uint32_t* chain = bucket + buckets;
    std::uint32_t hash = 5381;
    for (const char* c = name; *c != '\0'; ++c) hash = hash * 33 + static_cast<unsigned char>(*c);
    std::uint32_t i = bucket[hash % buckets];
    if (i < first) return nullptr;
    for (;; ++i) {
      const std::uint32_t its = chain[i - first];
      const auto& symbol = symbols_[i];
      if ((its | 1) == (hash | 1) && symbol.st_shndx != SHN_UNDEF &&
          (symbol.st_info & 0xf) == STT_FUNC && std::strcmp(strings_ + symbol.st_name, name) == 0) {
        return const_cast<char*>(at<char>(symbol.st_value));
      }
      if ((its & 1) != 0) return nullptr;
    }
  }

 private:
  template <typename T>
  const T* at(ElfW(Addr) offset) const {
    return reinterpret_cast<const T*>(info_.dlpi_addr + offset);
  }
  // glibc relocates these entries where the section can be written.
  template <typename T>
  const T* table(ElfW(Sxword) tag) const {
    for (const ElfW(Dyn)* d = dynamic_; d->d_tag != DT_NULL; ++d) {
      if (d->d_tag != tag) continue;
      const ElfW(Addr) p = d->d_un.d_ptr;
      return p < info_.dlpi_addr ? at<T>(p) : reinterpret_cast<const T*>(p);
    }
    return nullptr;
  }
  template <typename F>
  bool each(ElfW(Sxword) tag, F&& f) const {
    if (dynamic_ == nullptr || strings_ == nullptr) return false;
    for (const ElfW(Dyn)* d = dynamic_; d->d_tag != DT_NULL; ++d) {
      if (d->d_tag == tag && f(strings_ + d->d_un.d_val)) return true;
    }
    return false;
  }

  const dl_phdr_info& info_;
  const ElfW(Dyn) * dynamic_ = nullptr;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* strings_ = nullptr;
  const std::uint32_t* hash_ = nullptr;
};

// Calls f(object) until it returns true.
template <typename F>
void each_object(F&& f) {
  dl_iterate_phdr([](dl_phdr_info* info, std::size_t,
                     void* data) { return (*static_cast<F*>(data))(Object(*info)) ? 1 : 0; },
                  &f);
}

}  // namespace

void* symbol_near(const void* address, const char* name) {
  void* found = nullptr;
  each_object([&](const Object& caller) {
    if (!caller.holds(address)) return false;
    found = caller.find(name);
    if (found != nullptr) return true;
    each_object([&](const Object& other) {
      if (caller.needs(other)) found = other.find(name);
      return found != nullptr;
    });
    return true;
  });
  return found;
}

void* symbol_behind(const void* address, const char* name) {
  void* found = nullptr;
  bool behind = false;
  each_object([&](const Object& object) {
    if (behind) found = object.find(name);
    behind = behind || object.holds(address);
    return found != nullptr;
  });
  return found;
}

void* symbol_in(const char* soname, const char* name) {
  void* found = nullptr;
  each_object([&](const Object& object) {
    if (object.is_named(soname)) found = object.find(name);
    return found != nullptr;
  });
  return found;
}

}  // namespace tprof::resolve
