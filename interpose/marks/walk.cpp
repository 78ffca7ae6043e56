#include "interpose/marks/walk.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>

#include "interpose/base/held_signals.h"
#include "interpose/base/loaded_objects.h"
#include "interpose/base/lock.h"
#include "interpose/marks/unwind.h"
#include "interpose/real/resolve.h"

namespace tprof::native {
namespace {

std::atomic<bool> g_begun{false};
std::atomic<std::uint64_t> g_unloaded{0};
constinit Lock g_lock{LockOrder::unwinding};
Cancellation g_cancellation;  // of the thread that has the lock

struct Walker {
  // The thread's stack. The stack of a fiber is not read.
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::uint64_t unloaded = 0;
  bool busy = false;  // a signal handler's walk would find incomplete rules
};
thread_local constinit Walker t_walker __attribute__((tls_model("initial-exec")));

// Runs once for each thread. For the first thread, glibc reads /proc/self/maps.
[[gnu::noinline]] void find_stack() {
  const HeldSignals held_signals;
  const KeepErrno keep_errno;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* begin = nullptr;
  std::size_t size = 0;
  if (pthread_attr_getstack(&attributes, &begin, &size) == 0) {
    t_walker.begin = reinterpret_cast<std::uintptr_t>(begin);
    t_walker.end = t_walker.begin + size;
  }
  pthread_attr_destroy(&attributes);
}

}  // namespace

bool begin() {
  if (tprof_unwind_begin() == 0) return false;
  g_begun.store(true, std::memory_order_release);
  return true;
}

Stack walk(std::uintptr_t* to, std::size_t most) {
  constexpr std::size_t kOwn = 4;  // from a wrapper to here
  Walker& w = t_walker;
  if (w.end == 0) find_stack();
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (here < w.begin || here >= w.end || w.busy || !g_begun.load(std::memory_order_acquire)) {
    return {0, true};
  }
  const KeepErrno keep_errno;
  w.busy = true;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const std::uint64_t unloaded = g_unloaded.load(std::memory_order_relaxed);
  if (w.unloaded != unloaded) tprof_unwind_forget();
  w.unloaded = unloaded;
  const std::size_t room = most + kOwn + 1;
  auto* all = static_cast<std::uintptr_t*>(__builtin_alloca(room * sizeof *to));
  int cut = 0;
  const std::size_t found = tprof_unwind(all, room, w.end, &cut);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  w.busy = false;
  const auto* from = std::find_if_not(all, all + found, [](std::uintptr_t code) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address in the code
    return resolve::is_ours(reinterpret_cast<const void*>(code - 1));
  });
  const auto frames = static_cast<std::size_t>(all + found - from);
  std::copy_n(from, std::min(frames, most), to);
  return {std::min(frames, most), cut != 0 || frames > most};
}

bool forget_unloaded() {
  std::uint64_t unloaded = 0;
  each_loaded_object([&](const dl_phdr_info& any) {
    unloaded = any.dlpi_subs;
    return true;
  });
  return g_unloaded.exchange(unloaded) != unloaded;
}

}  // namespace tprof::native

using namespace tprof;

// libunwind blocks signals around both.
void tprof_unwind_lock() {
  Cancellation cancellation;
  cancellation.hold();
  native::g_lock.lock();
  native::g_cancellation = cancellation;
}

void tprof_unwind_unlock() {
  const Cancellation cancellation = native::g_cancellation;
  native::g_lock.unlock();
  cancellation.let_go();
}

int tprof_unwind_while_loaded(int (*step)(void*), void* cursor) {
  const HeldSignals held_signals;
  int result = -1;
  each_loaded_object([&](const dl_phdr_info&) {
    result = step(cursor);
    return true;
  });
  return result;
}

int tprof_unwind_objects(int (*callback)(dl_phdr_info*, std::size_t, void*), void* data) {
  int result = 0;
  each_loaded_object([&](dl_phdr_info& object) {
    result = callback(&object, sizeof object, data);
    return result != 0;
  });
  return result;
}
