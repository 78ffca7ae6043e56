// Handlers of forks.
#pragma once

// glibc's pthread_atfork, which is linked in, calls this function. It is weak: see oldest_glibc.h.
extern "C" {
[[gnu::visibility("hidden")]] extern void* __dso_handle;
[[gnu::weak]] int __register_atfork(void (*before)(), void (*in_parent)(), void (*in_child)(),
                                    void* object);
}

namespace tprof {

inline void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) {
  if (__register_atfork != nullptr) {
    __register_atfork(before, in_parent, in_child, &__dso_handle);
  }
}

}  // namespace tprof
