// Finds the real function for a wrapper.
//
// dlsym(RTLD_NEXT) is not enough: it finds nothing if Python loads torch with RTLD_LOCAL. One
// pointer per function is not enough either: two NCCLs can be mapped, and a communicator must go to
// the library that made it. So the function is looked up per calling object, first in that object's
// dependencies.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "interpose/api/functions.h"
#include "interpose/base/mapped_symbols.h"

namespace tprof::resolve {

// Functions that a program takes by address: from dlsym, cuGetProcAddress or
// cudaGetDriverEntryPoint.
//
// A wrapper that is called by its symbol finds the real function by its caller. When called by
// pointer, it can't: a process may have two NCCLs, and a communicator must go to the one that made
// it. So the program gets a thunk (hook/thunks.cpp), bound to the address that it would have got.
// The thunk leaves its number for the wrapper, and jumps to it.

// The number of libraries from which one function can be taken. For further ones the program gets
// the real function, and the coverage reports it.
inline constexpr std::uint32_t kBindings = 4;

// Left by the calling thread's thunk for the wrapper.
struct Bound {
  const void* caller = nullptr;  // the call's return address
  std::uint32_t thunk = 0;       // its number; 0: the wrapper was called by its symbol
};
// Returns the function that this call's thunk is bound to; null if there is no thunk. Calls of a
// signal handler that interrupted a thunk have other return addresses.
void* take_bound(Fn fn, const void* caller, Bound& bound);

// Returns what a program gets instead of `real`, the function `fn` of some library: a thunk bound
// to it, or `real` itself if it is one of ours, or if too many libraries have the function.
void* bind(Fn fn, void* real);

// Returns the wrapped function of that name, or Fn::none. Budget: 2 ns for other names.
Fn named(const char* name);

bool is_ours(const void* address);

// True if a driver function that a program takes by address is to be wrapped: copies with
// TPROF_DRIVER=1, allocations with TPROF_MEMORY=1, launches and waits with TPROF_TIMING=events, and
// cuGetProcAddress with any of these.
bool wanted_of_driver(Fn fn);

// The first page of code that called a wrapper, and its real function. A page belongs to one
// object. Later pages are in one map for all wrappers: a framework may have any number of extension
// libraries.
struct First {
  std::atomic<std::uintptr_t> page{0};  // 0: none
  std::atomic<void*> real{nullptr};
};
extern constinit First g_first[kFunctionCount];
inline std::uintptr_t page_of(const void* address) {
  constexpr std::uintptr_t kPage = 4096;  // or a part of a larger page
  static_assert(kFunctionCount + 2 < kPage);
  return reinterpret_cast<std::uintptr_t>(address) & ~(kPage - 1);
}

// Returns the function that the calling thunk is bound to, or the cached one, or looks
// it up in about 1 us: an interposer after us -> caller's object -> RTLD_NEXT -> RTLD_NOLOAD by
// soname. Null if the process has no such function.
[[gnu::noinline]] void* find(Fn fn, const void* return_address, Bound& bound);

// Budget: 1 ns.
inline void* real(Fn fn, const void* return_address, Bound& bound) {
  const First& first = g_first[static_cast<std::size_t>(fn)];
  const bool known = first.page.load(std::memory_order_acquire) == page_of(return_address);
  if (known && bound.thunk == 0) [[likely]]
    return first.real.load(std::memory_order_relaxed);
  return find(fn, return_address, bound);
}

// Notes, before the first call, that a library serves a function through a thunk.
void note_bound_library(Fn fn, void* real);

// True if `address` is in a library that serves wrapped functions: its nested calls are part of the
// call. Takes no lock.
bool serves(const void* address);

// Call this when exit() has begun: from then on no object is opened. glibc would run the
// constructors of an object again if its destructors have run, even with RTLD_NOLOAD.
void stop_opening();

void after_fork();  // in the child

// Returns the major version of a CUDA runtime from its file name; 0: not a CUDA runtime.
int runtime_named(std::string_view file);

// Returns the major version in the soname of the CUDA runtime at `address`. 0: not in one, for
// example in another interposer.
int runtime_version(const void* address);

// Returns a function of the library at `address` (a real NCCL's ncclCommCount, say), or null.
void* sibling(const void* address, const char* name);

// Returns a function of a mapped library; never maps one.
void* mapped(Library library, const char* name);

// A function of the CUDA driver that we call ourselves; null while the process has no driver.
inline void* of_driver(const char* name) {
  return mapped(Library::cuda, name);
}
// CUresult and the driver's enumerations are ints. `Type` returns one.
template <typename Type>
class DriverFunction : public FunctionOnDemand<Type*, of_driver> {
 public:
  using FunctionOnDemand<Type*, of_driver>::FunctionOnDemand;
  // Calls it. Returns -1 if the process has no such function.
  template <typename... A>
  int operator()(A... arguments) {
    Type* const function = this->get();
    return function == nullptr ? -1 : function(arguments...);
  }
};

// Publishes in `head`, now and on each change, which library serves which function, so that it
// survives a kill. `head` stays until a fork.
void publish(Head& head);

}  // namespace tprof::resolve
