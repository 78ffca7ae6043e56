// Finds the real function behind a wrapper.
//
// dlsym(RTLD_NEXT) is not enough: Python loads torch with RTLD_LOCAL, and then it finds nothing.
// And one pointer per function is not enough: two NCCLs can be mapped, and a communicator handle
// must go back to the library that made it. So the function is found per calling object, through
// that object's own dependencies first.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/api/functions.h"

namespace tprof::resolve {

// Real functions already found for one wrapper, by the address range of the calling object.
// A framework's extensions are libraries of their own: one that finds no place pays the slow way at
// every call.
struct Cache {
  static constexpr std::uint32_t kCallers = 64;
  struct Entry {
    std::uintptr_t begin, end;
    void* real;
  };
  Entry entry[kCallers]{};
  std::atomic<std::uint32_t> used{0};
};

// The slow way, about 1 us: an interposer behind us -> caller's object -> RTLD_NEXT -> RTLD_NOLOAD
// by soname. Null if there is no such function in this process.
[[gnu::cold, gnu::noinline]] void* find(Fn fn, Cache& cache, const void* return_address);

// Returns the function that the calling thunk is bound to (binding.h), or else finds it.
[[gnu::cold, gnu::noinline]] void* bound_or_found(Fn fn, Cache& cache, const void* return_address);

// Budget: 1 ns.
inline void* real(Fn fn, Cache& cache, const void* return_address) {
  const auto at = reinterpret_cast<std::uintptr_t>(return_address);
  const std::uint32_t used = cache.used.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < used; ++i) {
    const Cache::Entry& e = cache.entry[i];
    if (at - e.begin < e.end - e.begin) return e.real;
  }
  return bound_or_found(fn, cache, return_address);
}

// True if `address` lies in a library that wrapped functions were passed on to: what that library
// calls within a call is part of the call. Takes no lock.
bool serves(const void* address);

// Call this when exit() has begun: from then on nothing is opened. If an object is opened whose
// destructors have run, even with RTLD_NOLOAD, glibc runs its constructors again.
void stop_opening();

void after_fork();  // in the child

// version() returns the major version in the soname of the CUDA runtime that `address` lies in. If
// that is no CUDA runtime (another interposer behind us), it is the version of the only one in the
// process. 0: not known.
struct VersionCache {
  std::atomic<std::uint64_t> known{0};  // address and version of the last one
};
[[gnu::cold, gnu::noinline]] int find_version(const void* address, VersionCache& cache);
inline int version(const void* address, VersionCache& cache) {
  const std::uint64_t known = cache.known.load(std::memory_order_relaxed);
  if (known >> 8 == reinterpret_cast<std::uintptr_t>(address)) return static_cast<int>(known & 255);
  return find_version(address, cache);
}

// Returns a function of the library that `address` lies in (a real NCCL's ncclCommCount, say), or
// null.
void* sibling(const void* address, const char* name);

// Returns a function of a library that is already mapped; never maps one.
void* mapped(Library library, const char* name);

// Publishes which library serves which function: what is known now, and from now on what becomes
// known, so that a killed process has told it. `head` stays until a fork.
void publish(Head& head);

}  // namespace tprof::resolve
