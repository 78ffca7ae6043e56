// Wrappers for functions that a program takes by address: from dlsym, cuGetProcAddress or
// cudaGetDriverEntryPoint.
//
// A wrapper that is linked finds the real function by its caller. One that is called by pointer
// must be told, since a process can have two NCCLs. A communicator handle must go back to the one
// that made it. So the program is given a thunk, bound to the address that it would have got. The
// thunk leaves that address for the wrapper to find, and calls the wrapper.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/api/functions.h"

namespace tprof::resolve {

struct Binding {
  std::atomic<void*> real;
  std::atomic<bool> served;  // a call was passed on to it
  Fn fn;
};

// The binding of the calling thread's thunk, until the wrapper that it calls has taken it.
extern thread_local constinit Binding* t_binding __attribute__((tls_model("initial-exec")));

// Libraries that one function can be taken from. If there are more, the program gets the real
// function from the others, and the coverage says so.
inline constexpr std::uint32_t kBindings = 4;

// Each wrapper has one, in the section tprof_bindable. It is written where the wrapper is
// (TPROF_REAL), so that no table has to repeat the types.
struct Bindable {
  Binding* binding;
  void* const* thunk;
};

template <Fn kFn, typename Function, Function kWrapper>
struct Thunks;

template <Fn kFn, typename R, typename... A, R (*kWrapper)(A...)>
struct Thunks<kFn, R (*)(A...), kWrapper> {
  static inline constinit Binding binding[kBindings] = {
      {nullptr, false, kFn}, {nullptr, false, kFn}, {nullptr, false, kFn}, {nullptr, false, kFn}};

  template <std::uint32_t kSlot>
  static R call(A... arguments) {
    // Also puts back the binding of a thunk that this one interrupted (in a signal handler). And it
    // keeps the call below from becoming a jump: the wrapper has to see us as its caller.
    class Bound {
     public:
      Bound() : before_(t_binding) { t_binding = &binding[kSlot]; }
      ~Bound() { t_binding = before_; }

     private:
      Binding* before_;
    };
    const Bound bound;
    R (*wrapper)(A...) = kWrapper;
    asm volatile("" : "+r"(wrapper));  // not to be inlined
    return wrapper(arguments...);
  }

  static inline void* const thunk[kBindings] = {
      reinterpret_cast<void*>(&call<0>), reinterpret_cast<void*>(&call<1>),
      reinterpret_cast<void*>(&call<2>), reinterpret_cast<void*>(&call<3>)};
};
static_assert(kBindings == 4);

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
