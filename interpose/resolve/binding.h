// Wrappers for functions that a program takes by address: from dlsym, cuGetProcAddress or
// cudaGetDriverEntryPoint.
//
// A wrapper that is linked finds the real function by who calls it. One that is called by pointer
// must know it: two NCCLs can be in a process, and a communicator handle must go back to the one
// that made it. So what a program is given is a thunk, bound to the address that it would have got:
// it leaves that address for the wrapper to find, and calls it.
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

// What the calling thread's thunk is bound to, until the wrapper that it calls has found it.
extern thread_local constinit Binding* t_binding __attribute__((tls_model("initial-exec")));

// Libraries that one function can be taken from. What is taken from a further one is the real
// function, and the coverage says so.
inline constexpr std::uint32_t kBindings = 4;

// One for each wrapper, in the section tprof_bindable: it is written where the wrapper is
// (TPROF_REAL), and no table has to repeat the types.
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
    // Put back also what another thunk left that this one interrupted (a signal handler's). And a
    // call that something follows is no jump: the wrapper has to see us as its caller.
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

// What a program is to get instead of `real`, the function `fn` of some library: a thunk bound to
// it; `real` itself where it is one of ours already, or where there are too many of it.
void* bind(Fn fn, void* real);

// The wrapped function of that name, Fn::none if there is none. Budget: 2 ns for other names.
Fn named(const char* name);

bool is_ours(const void* address);

// Whether a function of the driver's that a program takes by address is to be wrapped: its copies
// with TPROF_DRIVER=1, what allocates with TPROF_MEMORY=1, launches and waits with
// TPROF_TIMING=events, the way to all of them with any.
bool wanted_of_driver(Fn fn);

}  // namespace tprof::resolve
