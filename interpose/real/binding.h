// Wrappers for functions that a program takes by address: from dlsym, cuGetProcAddress or
// cudaGetDriverEntryPoint.
//
// A wrapper that is called by its symbol finds the real function by its caller. When called by
// pointer, it can't: a process may have two NCCLs, and a communicator must go to the one that made
// it. So the program gets a thunk (hook/thunks.cpp), bound to the address that it would have got.
// The thunk leaves its number for the wrapper, and jumps to it.
#pragma once

#include <cstdint>

#include "interpose/api/functions.h"

namespace tprof::resolve {

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

}  // namespace tprof::resolve
