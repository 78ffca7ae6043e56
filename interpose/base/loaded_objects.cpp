#include "interpose/base/loaded_objects.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

#include "interpose/base/at_fork.h"
#include "interpose/base/held_signals.h"
#include "interpose/base/keep_errno.h"

namespace tprof {
namespace {

// Who is in there: process and thread, 0 for nobody. Another process is one whose thread was there
// when it forked us.
std::atomic<std::uint64_t> g_holder{0};
thread_local bool t_fork_holds = false;

std::uint64_t self() {
  return std::uint64_t{static_cast<std::uint32_t>(getpid())} << 32 |
         static_cast<std::uint32_t>(syscall(SYS_gettid));
}

void wait_a_little() {
  const timespec time{0, 100'000};
  nanosleep(&time, nullptr);
}

// Waits for no longer than the list can take: a program that forks from a callback of its own
// dl_iterate_phdr holds the loader's lock itself.
void before_fork() {
  constexpr int kTries = 10'000;  // a second
  const NoCancel no_cancel;
  const KeepErrno keep_errno;
  const std::uint64_t me = self();
  std::uint64_t holder = 0;
  for (int i = 0; i < kTries; ++i) {
    t_fork_holds = g_holder.compare_exchange_strong(holder, me);
    if (t_fork_holds || holder >> 32 != me >> 32 || holder == me) return;
    holder = 0;
    wait_a_little();
  }
}
void after_fork() {
  if (t_fork_holds) g_holder.store(0);
  t_fork_holds = false;
}

void watch_forks() {
  static std::atomic<bool> watching{false};
  if (!watching.exchange(true)) at_fork(before_fork, after_fork, after_fork);
}

}  // namespace

bool each_loaded_object(int (*callback)(dl_phdr_info*, std::size_t, void*), void* data) {
  watch_forks();
  const NoCancel no_cancel;
  const std::uint64_t me = self();
  std::uint64_t holder = 0;
  while (!g_holder.compare_exchange_strong(holder, me)) {
    if (holder == me) {  // from a callback
      dl_iterate_phdr(callback, data);
      return true;
    }
    if (holder >> 32 != me >> 32) return false;
    holder = 0;
    wait_a_little();
  }
  dl_iterate_phdr(callback, data);
  g_holder.store(0);
  return true;
}

}  // namespace tprof
