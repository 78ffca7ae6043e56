#include "interpose/resolve/resolve.h"

#include <dlfcn.h>
#include <link.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>

#include "interpose/base/keep_errno.h"
#include "interpose/base/loaded_objects.h"
#include "interpose/base/lock.h"
#include "interpose/base/text.h"
#include "interpose/resolve/binding.h"
#include "interpose/resolve/mapped_symbols.h"

namespace tprof::resolve {
namespace {

// The first call of a process is resolved before forks are watched. A child that is forked then
// takes over what a thread of its parent held: no one is there to give it back.
class OwnedLock {
 public:
  void lock() {
    const auto self = static_cast<std::uint32_t>(getpid());
    std::uint32_t mine = self;
    for (;;) {
      std::uint32_t seen = state_.load(std::memory_order_relaxed);
      if ((seen & ~kWaitedFor) != self) {
        if (state_.compare_exchange_weak(seen, mine, std::memory_order_acquire)) return;
        continue;
      }
      const std::uint32_t waited_for = seen | kWaitedFor;
      if (seen != waited_for && !state_.compare_exchange_weak(seen, waited_for)) continue;
      mine = self | kWaitedFor;  // others may be waiting too
      syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, waited_for, nullptr, nullptr, 0);
    }
  }
  void unlock() {
    if ((state_.exchange(0, std::memory_order_release) & kWaitedFor) == 0) return;
    syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

 private:
  static constexpr std::uint32_t kWaitedFor = 1U << 31;
  std::atomic<std::uint32_t> state_{0};  // the process whose thread has it; 0: nobody
};

// Paths of the libraries that serve, 1-based, and which serves what. Copied: a library that is
// closed takes its own name along.
constinit OwnedLock g_serving;
char g_path[kMaxLibraries][sizeof Head::library[0]];
std::uint32_t g_paths;
struct Span {
  std::atomic<std::uintptr_t> begin, end;
};
Span g_span[kMaxLibraries];  // where they lie
std::uint8_t g_serves[kFunctionCount];
Head* g_head;  // where they are published

std::atomic<void*> g_latest[kFunctionCount];  // for callers that come when nothing may be opened
std::atomic<bool> g_may_open{true};
constinit OwnedLock g_busy;  // of the caches

// Sonames by which the libraries may already be mapped, newest first.
constexpr const char* kNcclNames[] = {"libnccl.so.2", "libtorch_cuda.so"};
constexpr const char* kCudartNames[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};
constexpr const char* kCudaNames[] = {"libcuda.so.1"};

struct ObjectRange {
  std::uintptr_t at;
  std::uintptr_t begin = 0, end = 0;
};

int match_range(dl_phdr_info* object, std::size_t, void* data) {
  auto& range = *static_cast<ObjectRange*>(data);
  std::uintptr_t begin = UINTPTR_MAX;
  std::uintptr_t end = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const std::uintptr_t from = object->dlpi_addr + segment.p_vaddr;
    begin = std::min(begin, from);
    end = std::max(end, from + segment.p_memsz);
  }
  if (range.at < begin || range.at >= end) return 0;
  range.begin = begin;
  range.end = end;
  return 1;
}

ObjectRange range_of(const void* address) {
  ObjectRange range{reinterpret_cast<std::uintptr_t>(address)};
  each_loaded_object(match_range, &range);
  return range;
}

bool may_open() {
  return g_may_open.load(std::memory_order_relaxed);
}

// dlsym in an object that is mapped already, without keeping it mapped.
void* lookup(const char* object, const char* name) {
  if (!may_open()) return symbol_in(object, name);
  void* handle = dlopen(object, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* found = dlsym(handle, name);
  dlclose(handle);
  return found != nullptr && !is_ours(found) ? found : nullptr;
}

void* through_object_of(const void* address, const char* name) {
  if (!may_open()) return symbol_near(address, name);
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) return nullptr;
  if (map == nullptr) return nullptr;
  // The program itself has an empty name: its handle is the global scope, which finds us first.
  return map->l_name[0] == '\0' ? nullptr : lookup(map->l_name, name);
}

// The number behind `prefix` in the soname of a mapped object, 0 if it has another name.
int version_in_soname(const link_map& map, std::string_view prefix) {
  const char* strings = nullptr;
  std::size_t name = 0;
  for (const ElfW(Dyn)* d = map.l_ld; d != nullptr && d->d_tag != DT_NULL; ++d) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address, which the loader has relocated
    if (d->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(d->d_un.d_ptr);
    if (d->d_tag == DT_SONAME) name = d->d_un.d_val;
  }
  if (strings == nullptr || name == 0) return 0;
  std::string_view soname = strings + name;
  if (!soname.starts_with(prefix)) return 0;
  // libcudart.so.12, or libcudart-9335f6a2.so.12 where a wheel carries its own.
  const std::size_t digits = soname.find(".so.");
  if (digits == std::string_view::npos) return 0;
  int version = 0;
  for (soname.remove_prefix(digits + 4); !soname.empty(); soname.remove_prefix(1)) {
    if (soname[0] < '0' || soname[0] > '9' || version > 99) break;
    version = version * 10 + (soname[0] - '0');
  }
  return version;
}

// Of the one CUDA runtime in the process; 0 where there are several.
int version_of_only_runtime() {
  if (!g_may_open.load(std::memory_order_relaxed)) return 0;
  int only = 0;
  for (const char* soname : kCudartNames) {
    void* handle = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    link_map* map = nullptr;
    const bool found = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0;
    const int version = found ? version_in_soname(*map, "libcudart") : 0;
    dlclose(handle);
    if (only != 0) return 0;
    only = version;
  }
  return only;
}

// Another interposer behind us, which any caller would get if we were not there. Not NCCL or CUDA
// itself: of these two versions may be mapped, and whose it is depends on the caller.
void* behind_us(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  Dl_info where;
  if (found == nullptr || is_ours(found) || dladdr(found, &where) == 0) return nullptr;
  const std::string_view path = where.dli_fname;
  const std::string_view file = without_prefix(path, path.rfind('/') + 1);
  constexpr std::string_view kVendors[] = {"libnccl.so", "libcudart.so", "libcuda.so"};
  for (const std::string_view vendor : kVendors) {
    if (file.starts_with(vendor)) return nullptr;
  }
  return found;
}

void publish_function(std::size_t i) {
  if (g_head == nullptr || g_serves[i] == 0) return;
  std::uint32_t n = g_head->libraries.load(std::memory_order_relaxed);
  for (; n < g_paths; ++n) std::memcpy(g_head->library[n], g_path[n], sizeof g_path[n]);
  g_head->libraries.store(n, std::memory_order_release);
  g_head->function[i].library = g_serves[i];
}

// False: it was known.
bool note_library(Fn fn, const char* path, const void* address) {
  const ObjectRange range = range_of(address);  // not under the lock: it asks the loader
  const LockGuard guard(g_serving);
  std::uint32_t at = 0;
  while (at < g_paths && std::strncmp(g_path[at], path, sizeof g_path[at] - 1) != 0) ++at;
  if (at == kMaxLibraries) return true;
  const bool is_new = at == g_paths;
  if (is_new) {
    std::strncpy(g_path[g_paths++], path, sizeof g_path[at] - 1);
    g_span[at].end.store(range.end, std::memory_order_relaxed);
    g_span[at].begin.store(range.begin, std::memory_order_release);
  }
  const auto i = static_cast<std::size_t>(fn);
  g_serves[i] = static_cast<std::uint8_t>(at + 1);
  publish_function(i);
  return is_new;
}

// The wrappers remember its functions: a library that the program closes must not go, or another
// one would be called at its addresses.
void keep_mapped(const char* path) {
  if (!may_open()) return;
  void* handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (handle != nullptr) dlclose(handle);
}

// Enters a caller that has its own way to the real function. Two threads of one may come at once.
void remember(Cache& cache, const ObjectRange& caller, void* real) {
  const LockGuard guard(g_busy);
  const std::uint32_t used = cache.used.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < used; ++i) {
    const Cache::Entry& e = cache.entry[i];
    if (e.begin == caller.begin && e.end == caller.end) return;
  }
  if (used == Cache::kCallers) return;
  cache.entry[used] = {caller.begin, caller.end, real};
  cache.used.store(used + 1, std::memory_order_release);
}

void* search(Fn fn, const void* return_address) {
  const char* name = info(fn).name.data();
  if (void* found = behind_us(name)) return found;
  if (void* found = through_object_of(return_address, name)) return found;
  if (void* found = dlsym(RTLD_NEXT, name)) {
    if (!is_ours(found)) return found;
  }
  if (void* found = g_latest[static_cast<std::size_t>(fn)].load(std::memory_order_acquire)) {
    if (!may_open()) return found;
  }
  const auto in_any = [&](std::span<const char* const> sonames) -> void* {
    for (const char* soname : sonames) {
      if (void* found = lookup(soname, name)) return found;
    }
    return nullptr;
  };
  switch (info(fn).library) {
    case Library::nccl:
      return in_any(kNcclNames);
    case Library::cudart:
      return in_any(kCudartNames);
    case Library::cuda:
      return in_any(kCudaNames);
  }
  return nullptr;
}

}  // namespace

void* find(Fn fn, Cache& cache, const void* return_address) {
  const HeldSignals held_signals;
  const KeepErrno keep_errno;
  void* found = search(fn, return_address);
  if (found == nullptr) {
    dlerror();  // our misses are not the program's errors
    return nullptr;
  }
  g_latest[static_cast<std::size_t>(fn)].store(found, std::memory_order_release);
  Dl_info where;
  if (dladdr(found, &where) != 0) {
    if (note_library(fn, where.dli_fname, found)) keep_mapped(where.dli_fname);
  }
  dlerror();
  const ObjectRange range = range_of(return_address);
  if (range.end != 0) remember(cache, range, found);
  return found;
}

void* bound_or_found(Fn fn, Cache& cache, const void* return_address) {
  Binding* const binding = t_binding;
  if (binding == nullptr || binding->fn != fn || !is_ours(return_address)) {
    return find(fn, cache, return_address);
  }
  t_binding = nullptr;
  void* real = binding->real.load(std::memory_order_acquire);
  if (!binding->served.load(std::memory_order_relaxed)) [[unlikely]] {
    const HeldSignals held_signals;
    const KeepErrno keep_errno;
    Dl_info where;
    if (dladdr(real, &where) != 0) note_library(fn, where.dli_fname, real);
    binding->served.store(true, std::memory_order_relaxed);
  }
  return real;
}

int find_version(const void* address, VersionCache& cache) {
  const HeldSignals held_signals;
  const KeepErrno keep_errno;
  Dl_info info;
  link_map* map = nullptr;
  int version = 0;
  if (dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0) {
    version = version_in_soname(*map, "libcudart");
  }
  if (version == 0) version = version_of_only_runtime();
  dlerror();
  if (version > 0 && version < 256) {
    cache.known.store(
        reinterpret_cast<std::uintptr_t>(address) << 8 | static_cast<std::uint64_t>(version),
        std::memory_order_relaxed);
  }
  return version;
}

bool serves(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (const Span& span : g_span) {
    const std::uintptr_t begin = span.begin.load(std::memory_order_acquire);
    if (begin == 0) return false;
    if (at >= begin && at < span.end.load(std::memory_order_relaxed)) return true;
  }
  return false;
}

void after_fork() {
  g_busy.unlock();
  g_serving.unlock();
  g_head = nullptr;
}

void stop_opening() {
  g_may_open.store(false, std::memory_order_relaxed);
}

void* sibling(const void* address, const char* name) {
  const HeldSignals held_signals;
  void* found = through_object_of(address, name);
  dlerror();
  return found;
}

void* mapped(const char* soname, const char* name) {
  const HeldSignals held_signals;
  void* found = lookup(soname, name);
  dlerror();
  return found;
}

void publish(Head& head) {
  const LockGuard guard(g_serving);
  g_head = &head;
  for (std::size_t i = 0; i < kFunctionCount; ++i) publish_function(i);
}

}  // namespace tprof::resolve
