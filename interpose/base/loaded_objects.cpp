#include "interpose/base/loaded_objects.h"

#include <dlfcn.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "interpose/base/fork.h"
#include "interpose/base/lock.h"

namespace tprof {
namespace {

constinit Lock g_lock{LockOrder::objects};
thread_local constinit bool t_inside __attribute__((tls_model("initial-exec"))) = false;
thread_local constinit bool t_fork_holds __attribute__((tls_model("initial-exec"))) = false;

// Waits no longer than reading the list can take: a program that forks in a callback of
// dl_iterate_phdr holds the loader's lock itself.
void before_fork() {
  constexpr std::uint64_t kLongestNs = 1'000'000'000;
  const NoCancel no_cancel;
  t_fork_holds = !t_inside && !g_lock.left_by_parent() && g_lock.lock_until(now_ns() + kLongestNs);
}
void after_fork() {
  if (t_fork_holds) g_lock.unlock();
  t_fork_holds = false;
}

void watch_forks() {
  static std::atomic<bool> watching{false};
  if (!watching.exchange(true)) at_fork(before_fork, after_fork, after_fork);
}

template <typename F>
void each_segment(const dl_phdr_info& object, F&& f) {
  for (const auto& segment : std::span(object.dlpi_phdr, object.dlpi_phnum)) {
    if (segment.p_type == PT_LOAD) f(object.dlpi_addr + segment.p_vaddr, segment.p_memsz);
  }
}

}  // namespace

bool iterate_loaded_objects(int (*callback)(dl_phdr_info*, std::size_t, void*), void* data) {
  watch_forks();
  const NoCancel no_cancel;
  if (g_lock.left_by_parent()) return false;
  const bool from_callback = t_inside;
  t_inside =
      true;  // before the lock: a signal handler that gets here would wait for its own thread
  if (!from_callback) g_lock.lock();
  dl_iterate_phdr(callback, data);
  if (!from_callback) g_lock.unlock();
  t_inside = from_callback;
  return true;
}

AddressRange range_of(const dl_phdr_info& object) {
  AddressRange range{UINTPTR_MAX, 0};
  each_segment(object, [&](std::uintptr_t begin, std::uintptr_t size) {
    range = {std::min(range.begin, begin), std::max(range.end, begin + size)};
  });
  return range;
}

bool holds(const dl_phdr_info& object, std::uintptr_t address) {
  bool held = false;
  each_segment(object, [&](std::uintptr_t begin, std::uintptr_t size) {
    held = held || address - begin < size;
  });
  return held;
}

std::string_view program_path(const void* within, std::span<char> buffer) {
  // A loader that was executed with the program as its argument knows the program's path.
  if (getauxval(AT_BASE) == 0) {
    Dl_info info{};
    if (dladdr(within, &info) == 0 || info.dli_fname == nullptr) return {};
    return info.dli_fname;
  }
  const ssize_t n = readlink("/proc/self/exe", buffer.data(), buffer.size());
  return {buffer.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
}

}  // namespace tprof
