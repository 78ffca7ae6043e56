#include "interpose/real/binding.h"

#include <array>
#include <atomic>

#include "interpose/base/hash.h"
#include "interpose/base/mapped_symbols.h"
#include "interpose/real/resolve.h"
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

}  // namespace tprof::resolve
