// Finds the real function behind a wrapper.
//
// dlsym(RTLD_NEXT) is not enough: Python loads torch with RTLD_LOCAL, and then it finds nothing.
// And one pointer per function is not enough: two NCCLs can be mapped, and a communicator handle
// must go back to the library that made it. So the function is found per calling object, through
// that object's own dependencies first.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "interpose/api/functions.h"
#include "interpose/base/mapped_symbols.h"
#include "interpose/real/binding.h"

namespace tprof::resolve {

// The first page of code that called a wrapper, and its real function. A page is of one object.
// Those that come later are in one map for all wrappers: a framework's extensions are libraries of
// their own, in any number.
struct First {
  std::atomic<std::uintptr_t> page{0};  // no code is there
  std::atomic<void*> real{nullptr};
};
extern constinit First g_first[kFunctionCount];
inline std::uintptr_t page_of(const void* address) {
  constexpr std::uintptr_t kPage = 4096;  // or a part of one
  static_assert(kFunctionCount + 2 < kPage);
  return reinterpret_cast<std::uintptr_t>(address) & ~(kPage - 1);
}

// Returns what the calling thunk is bound to (binding.h), or what was found before, or else finds
// it, in about 1 us: an interposer behind us -> caller's object -> RTLD_NEXT -> RTLD_NOLOAD by
// soname. Null if there is no such function in this process.
[[gnu::noinline]] void* find(Fn fn, const void* return_address, Bound& bound);

// Budget: 1 ns.
inline void* real(Fn fn, const void* return_address, Bound& bound) {
  const First& first = g_first[static_cast<std::size_t>(fn)];
  const bool known = first.page.load(std::memory_order_acquire) == page_of(return_address);
  if (known && bound.thunk == 0) [[likely]]
    return first.real.load(std::memory_order_relaxed);
  return find(fn, return_address, bound);
}

// Notes that a library serves a function by way of a thunk, before the first such call.
void note_bound_library(Fn fn, void* real);

// True if `address` lies in a library that wrapped functions were passed on to: what that library
// calls within a call is part of the call. Takes no lock.
bool serves(const void* address);

// Call this when exit() has begun: from then on nothing is opened. If an object is opened whose
// destructors have run, even with RTLD_NOLOAD, glibc runs its constructors again.
void stop_opening();

void after_fork();  // in the child

// Returns the major version of a CUDA runtime, from the name of its file; 0: it is none.
int runtime_named(std::string_view file);

// Returns the major version in the soname of the CUDA runtime that `address` lies in. 0: it lies in
// none, such as another interposer behind us.
int runtime_version(const void* address);

// Returns a function of the library that `address` lies in (a real NCCL's ncclCommCount, say), or
// null.
void* sibling(const void* address, const char* name);

// Returns a function of a library that is already mapped; never maps one.
void* mapped(Library library, const char* name);

// A function of the CUDA driver that we call ourselves; null while the process has no driver.
inline void* of_driver(const char* name) {
  return mapped(Library::cuda, name);
}
template <typename Type>
using DriverFunction = BehindUs<Type*, of_driver>;

// Publishes which library serves which function: what is known now, and from now on what becomes
// known, so that a killed process has told it. `head` stays until a fork.
void publish(Head& head);

}  // namespace tprof::resolve
