// Threads of the library, and how other threads wake them and wait for them.
#pragma once

#include <dlfcn.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "interpose/base/clock.h"
#include "interpose/base/futex.h"
#include "interpose/base/held_signals.h"
#include "interpose/base/lock.h"

namespace tprof {

// Waits until a thread changes `word` from `value` and wakes us, or for `ms`.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::uint32_t ms) {
  check_no_lock_is_held();
  futex_sleep(word, value, now_ns() + std::uint64_t{ms} * 1'000'000);
}

// Waits until the counter `done` has reached `wanted`. Returns false on a timeout.
inline bool wait_until(std::atomic<std::uint32_t>& done, std::uint32_t wanted,
                       std::uint32_t timeout_ms) {
  constexpr std::uint32_t kLookAgainMs = 10;  // the counting thread may be gone
  const std::uint64_t until = now_ns() + std::uint64_t{timeout_ms} * 1'000'000;
  for (;;) {
    const std::uint32_t seen = done.load(std::memory_order_acquire);
    if (static_cast<std::int32_t>(seen - wanted) >= 0) return true;
    if (now_ns() >= until) return false;
    futex_wait(done, seen, kLookAgainMs);
  }
}

// Lets the program's threads run first, but not so much that its exit waits for ours: before a
// process ends, each of its threads has to run once more.
inline constexpr int kBackgroundNice = 10;
// Gives the calling thread that priority and a name.
inline void become_background(const char* name) {
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kBackgroundNice);
  prctl(PR_SET_NAME, name);
}

// glibc puts the thread-local memory of the program and its libraries on each thread's stack, and
// only this internal function returns its size (the JVM uses it, too). Without it the stack is as
// large as those of the program's threads.
inline void set_stack_size(pthread_attr_t& attributes) {
  constexpr std::size_t kOurs = std::size_t{256} << 10;
  const auto taken = reinterpret_cast<std::size_t (*)(const pthread_attr_t*)>(
      dlsym(RTLD_DEFAULT, "__pthread_get_minstack"));
  if (taken != nullptr) pthread_attr_setstacksize(&attributes, kOurs + taken(&attributes));
}

// Starts a detached thread with a small stack and all signals blocked: signals are for the program.
// Returns false if the system allows no more threads.
inline bool start_background_thread(void* (*run)(void*)) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  set_stack_size(attributes);
  const NoSignals inherited_by_the_thread;
  pthread_t thread;
  const bool made = pthread_create(&thread, &attributes, run, nullptr) == 0;
  pthread_attr_destroy(&attributes);
  return made;
}

}  // namespace tprof
