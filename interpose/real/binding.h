// Wrappers for functions that a program takes by address: from dlsym, cuGetProcAddress or
// cudaGetDriverEntryPoint.
//
// A wrapper that is linked finds the real function by its caller. One that is called by pointer
// must be told, since a process can have two NCCLs. A communicator handle must go back to the one
// that made it. So the program is given a thunk (hook/thunks.cpp), bound to the address that it
// would have got. The thunk leaves its number for the wrapper to find, and jumps there.
#pragma once

#include <cstdint>

#include "interpose/api/functions.h"

namespace tprof::resolve {

// Libraries that one function can be taken from. If there are more, the program gets the real
// function from the others, and the coverage says so.
inline constexpr std::uint32_t kBindings = 4;

// The calling thread's thunk leaves this, until the wrapper takes it.
struct Bound {
  const void* caller = nullptr;  // the call that it stands for returns there
  std::uint32_t thunk = 0;       // its number; 0: the wrapper was called by its name
};
// Returns the function that the thunk of this call is bound to; null if it has none. A signal
// handler may have interrupted a thunk: its calls return to other places.
void* take_bound(Fn fn, const void* caller, Bound& bound);

// Returns what a program is to get instead of `real`, the function `fn` of some library: a thunk
// bound to it. It is `real` itself if that is one of ours already, or if too many libraries have
// that function.
void* bind(Fn fn, void* real);

// Returns the wrapped function of that name, or Fn::none. Budget: 2 ns for other names.
Fn named(const char* name);

bool is_ours(const void* address);

// True if a driver function that a program takes by address is to be wrapped. TPROF_DRIVER=1 wants
// copies, TPROF_MEMORY=1 allocations, TPROF_TIMING=events launches and waits. Any of these wants
// cuGetProcAddress.
bool wanted_of_driver(Fn fn);

}  // namespace tprof::resolve
