// The objects that the loader has mapped, safe with forks.
//
// dl_iterate_phdr holds a lock of the loader, and a fork copies the lock as it is (glibc resets
// some of its locks in the child, not this one). A child forked meanwhile by another thread could
// never load a library again. A fork therefore waits until we have finished. If it could not wait,
// the child does without the list.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace tprof {

// As dl_iterate_phdr; see each_loaded_object().
bool iterate_loaded_objects(int (*callback)(dl_phdr_info*, std::size_t, void*), void* data);

// Calls f(object) until it returns true. Calls nothing and returns false in a child that was forked
// while a thread of its parent was in here.
template <typename F>
bool each_loaded_object(F&& f) {
  const auto call = [](dl_phdr_info* object, std::size_t, void* data) {
    return (*static_cast<std::remove_reference_t<F>*>(data))(*object) ? 1 : 0;
  };
  return iterate_loaded_objects(call, &f);
}

// Addresses [begin, end). An object's range includes the gaps between its segments.
struct AddressRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};
AddressRange range_of(const dl_phdr_info& object);

// True if the address lies in a loaded segment of the object.
bool holds(const dl_phdr_info& object, std::uintptr_t address);

// Returns the program's path, which the loader does not know; `within` is an address in the
// program. Empty: not known.
std::string_view program_path(const void* within, std::span<char> buffer);

}  // namespace tprof
