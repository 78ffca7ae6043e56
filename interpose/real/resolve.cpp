#include "interpose/real/resolve.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstring>

#include "interpose/base/hash.h"
#include "interpose/base/held_signals.h"
#include "interpose/base/loaded_objects.h"
#include "interpose/base/lock.h"
#include "interpose/base/mapped_symbols.h"
#include "interpose/base/shared_map.h"
#include "interpose/base/text.h"
#include "interpose/session/config.h"

extern "C" {
// Where this library begins and ends (from the linker).
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));
// The thunks, of kThunkBytes each, and the targets of each function's thunks. Weak: a program built
// from parts of us may have none.
extern const char tprof_thunks[] __attribute__((visibility("hidden"), weak));
extern std::atomic<void*> tprof_wrappers[] __attribute__((visibility("hidden"), weak));
}

namespace tprof::resolve {
namespace {

// The function that each thunk is bound to. The thunks of function n are 4 n to 4 n + 3.
struct Binding {
  std::atomic<void*> real;
  std::atomic<bool> served;  // a call was passed on to it
};
Binding g_binding[kFunctionCount * kBindings];
constexpr std::size_t kThunkBytes = 16;

// Names by hash, with open addressing. Not a SharedMap: made at compile time, and keys are texts.
constexpr std::size_t kSlots = 1024;
static_assert(kFunctionCount * 4 <= kSlots * 2);

constexpr std::array<std::uint16_t, kSlots> make_table() {
  std::array<std::uint16_t, kSlots> table{};
  for (std::size_t i = 1; i < kFunctionCount; ++i) {
    std::size_t at = fnv1a(kFunctions[i].name) % kSlots;
    while (table[at] != 0) at = (at + 1) % kSlots;
    table[at] = static_cast<std::uint16_t>(i);
  }
  return table;
}
constexpr std::array<std::uint16_t, kSlots> kTable = make_table();

// Paths of the libraries that serve calls, 1-based, and which library serves which function. The
// paths are copies, since a closed library's name is gone.
constinit Lock g_serving{LockOrder::serving};
char g_path[kMaxLibraries][sizeof Head::library[0]];
std::uint32_t g_paths;
struct Span {
  std::atomic<std::uintptr_t> begin, end;
};
Span g_span[kMaxLibraries];  // their address ranges
std::uint8_t g_serves[kFunctionCount];
Head* g_head;  // publishes them

// The real function for each wrapper and calling page.
constinit SharedMap<void*> g_found{LockOrder::callers};
std::atomic<void*> g_latest[kFunctionCount];  // for callers when nothing may be opened
std::atomic<bool> g_may_open{true};

// Held while we ask the loader: hides our failed lookups from the program.
class [[nodiscard]] AskingLoader : NotCopied {
 public:
  ~AskingLoader() { dlerror(); }

 private:
  KeepErrno keep_errno_;
  HeldSignals held_signals_;
};

// Returns an empty range if the address is in no object.
AddressRange range_of(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  AddressRange found;
  each_loaded_object([&](const dl_phdr_info& object) {
    const AddressRange range = tprof::range_of(object);
    const bool encloses = at >= range.begin && at < range.end;
    if (encloses) found = range;
    return encloses;
  });
  return found;
}

bool may_open() {
  return g_may_open.load(std::memory_order_relaxed);
}

// Calls dlsym on a mapped object, without keeping it mapped.
void* lookup(const char* object, const char* name) {
  if (!may_open()) return symbol_in(object, name);
  void* handle = loader::dlopen(object, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* found = loader::dlsym(handle, name);
  dlclose(handle);
  return found != nullptr && !is_ours(found) ? found : nullptr;
}

void* lookup(Library library, const char* name) {
  void* found = nullptr;
  for (const char* soname : names(library).soname) {
    if (found == nullptr && soname != nullptr) found = lookup(soname, name);
  }
  return found;
}

// For the program, or a preload before us that passes on a call of its own function: looks after
// us.
void* through_object_of(const void* address, const char* name) {
  if (is_before_us(address)) return nullptr;
  if (!may_open()) return symbol_near(address, name);
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) return nullptr;
  return map == nullptr ? nullptr : lookup(map->l_name, name);
}

// Finds another interposer after us, which every caller would get without us. Ignores NCCL and CUDA
// themselves: two versions may be mapped, and the right one depends on the caller.
void* behind_us(const char* name) {
  void* found = loader::dlsym(RTLD_NEXT, name);
  Dl_info where;
  if (found == nullptr || is_ours(found) || dladdr(found, &where) == 0) return nullptr;
  for (const LibraryNames& vendor : kLibraries) {
    if (file_name(where.dli_fname).starts_with(vendor.file)) return nullptr;
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

// Notes that the library at `address` serves `fn`. Returns true if the library is new, or there is
// no room for it.
bool note_library(Fn fn, const char* path, const void* address) {
  const AddressRange range = range_of(address);  // not under the lock: it asks the loader
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

// `keep`: wrappers cache its functions, so the library must stay mapped after the program closes
// it: otherwise they might call another one at its addresses.
void note_library_of(Fn fn, void* real, bool keep) {
  Dl_info where;
  if (dladdr(real, &where) == 0 || !note_library(fn, where.dli_fname, real)) return;
  if (!keep || !may_open()) return;
  void* handle = loader::dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (handle != nullptr) dlclose(handle);
}

void* search(Fn fn, const void* return_address) {
  const char* name = info(fn).name.data();
  if (void* found = behind_us(name)) return found;
  if (void* found = through_object_of(return_address, name)) return found;
  if (void* found = loader::dlsym(RTLD_NEXT, name)) {
    if (!is_ours(found)) return found;
  }
  if (void* found = g_latest[static_cast<std::size_t>(fn)].load(std::memory_order_acquire)) {
    if (!may_open()) return found;
  }
  return lookup(info(fn).library, name);
}

// The slow path.
[[gnu::cold]] void* find_anew(Fn fn, const void* return_address, std::uint64_t key) {
  const AskingLoader asking;
  void* found = search(fn, return_address);
  if (found == nullptr) return nullptr;
  g_latest[static_cast<std::size_t>(fn)].store(found, std::memory_order_release);
  note_library_of(fn, found, true);
  g_found.insert(key, found);
  First& first = g_first[static_cast<std::size_t>(fn)];
  void* none = nullptr;
  if (first.real.compare_exchange_strong(none, found)) {
    first.page.store(page_of(return_address), std::memory_order_release);
  }
  return found;
}

}  // namespace

Fn named(const char* name) {
  // All wrapped names begin with nccl or cu.
  if (!(name[0] == 'c' && name[1] == 'u') && !(name[0] == 'n' && name[1] == 'c')) return Fn::none;
  const std::string_view text(name);
  for (std::size_t at = fnv1a(text) % kSlots; kTable[at] != 0; at = (at + 1) % kSlots) {
    if (kFunctions[kTable[at]].name == text) return static_cast<Fn>(kTable[at]);
  }
  return Fn::none;
}

bool is_ours(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto begin = reinterpret_cast<std::uintptr_t>(__ehdr_start);
  return at - begin < reinterpret_cast<std::uintptr_t>(_end) - begin;
}

bool wanted_of_driver(Fn fn) {
  if (is_allocation(fn)) return opt_in::memory();
  if (is_followed(fn)) return opt_in::events();
  const bool way =
      fn == Fn::cuGetProcAddress || fn == Fn::cuGetProcAddress_v2 || begins_capture(fn);
  return opt_in::driver() || (way && (opt_in::memory() || opt_in::events()));
}

void* take_bound(Fn fn, const void* caller, Bound& bound) {
  Binding& binding = g_binding[bound.thunk];
  if (bound.caller != caller || bound.thunk / kBindings != static_cast<std::uint32_t>(fn)) {
    return nullptr;
  }
  bound.thunk = 0;
  void* real = binding.real.load(std::memory_order_acquire);
  if (!binding.served.load(std::memory_order_relaxed)) [[unlikely]] {
    note_bound_library(fn, real);
    binding.served.store(true, std::memory_order_relaxed);
  }
  return real;
}

void* bind(Fn fn, void* real) {
  if (real == nullptr || is_ours(real) || tprof_thunks == nullptr) return real;
  const auto n = static_cast<std::size_t>(fn);
  void* const wrapper = symbol_beside(__ehdr_start, kFunctions[n].name.data());
  if (wrapper == nullptr) return real;
  tprof_wrappers[n].store(wrapper, std::memory_order_relaxed);
  for (std::size_t i = n * kBindings; i < (n + 1) * kBindings; ++i) {
    void* bound = nullptr;
    if (g_binding[i].real.compare_exchange_strong(bound, real) || bound == real) {
      return const_cast<char*>(tprof_thunks) + i * kThunkBytes;
    }
  }
  return real;
}

constinit First g_first[kFunctionCount]{};

void* find(Fn fn, const void* return_address, Bound& bound) {
  void* found = bound.thunk == 0 ? nullptr : take_bound(fn, return_address, bound);
  const std::uint64_t key = page_of(return_address) | (static_cast<std::uint64_t>(fn) + 2);
  if (found != nullptr || g_found.find(key, found)) return found;
  return find_anew(fn, return_address, key);
}

void note_bound_library(Fn fn, void* real) {
  const HeldSignals held_signals;
  const KeepErrno keep_errno;
  note_library_of(fn, real, false);
}

int runtime_named(std::string_view file) {
  // libcudart.so.12, or libcudart-9335f6a2.so.12 in a wheel with its own copy.
  const std::size_t number = file.find(".so.");
  if (!file.starts_with("libcudart") || number == std::string_view::npos) return 0;
  int version = 0;
  std::from_chars(file.data() + number + 4, file.data() + file.size(), version);
  return version;
}

int runtime_version(const void* address) {
  // The last address and its version.
  static constinit std::atomic<std::uint64_t> cache{0};
  const std::uint64_t known = cache.load(std::memory_order_relaxed);
  if (known >> 8 == reinterpret_cast<std::uintptr_t>(address)) return static_cast<int>(known & 255);
  const AskingLoader asking;
  Dl_info info;
  link_map* map = nullptr;
  int version = 0;
  if (dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0) {
    version = runtime_named(soname_of(*map));
  }
  if (version > 0 && version < 256) {
    cache.store(
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
  g_head = nullptr;
}

void stop_opening() {
  g_may_open.store(false, std::memory_order_relaxed);
}

void* sibling(const void* address, const char* name) {
  const AskingLoader asking;
  return through_object_of(address, name);
}

void* mapped(Library library, const char* name) {
  const AskingLoader asking;
  return lookup(library, name);
}

void publish(Head& head) {
  const LockGuard guard(g_serving);
  g_head = &head;
  for (std::size_t i = 0; i < kFunctionCount; ++i) publish_function(i);
}

}  // namespace tprof::resolve
