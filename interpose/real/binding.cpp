#include "interpose/real/binding.h"

#include <array>

#include "interpose/base/hash.h"
#include "interpose/session/config.h"

extern "C" {
// Where this library begins and ends (from the linker).
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));
// The wrappers' section. Weak: a program that is made of parts of us may have no wrapper.
extern const tprof::resolve::Bindable __start_tprof_bindable[]
    __attribute__((visibility("hidden"), weak));
extern const tprof::resolve::Bindable __stop_tprof_bindable[]
    __attribute__((visibility("hidden"), weak));
}

namespace tprof::resolve {

thread_local constinit Binding* t_binding __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

// Names by hash, open addressing.
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

const Bindable* bindable(Fn fn) {
  for (const Bindable* b = __start_tprof_bindable; b != __stop_tprof_bindable; ++b) {
    if (b->binding->fn == fn) return b;
  }
  return nullptr;
}

}  // namespace

Fn named(const char* name) {
  // All wrapped names begin like this: nccl... and cu...
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

void* bind(Fn fn, void* real) {
  if (real == nullptr || is_ours(real)) return real;
  const Bindable* function = bindable(fn);
  if (function == nullptr) return real;
  for (std::uint32_t i = 0; i < kBindings; ++i) {
    void* bound = nullptr;
    if (function->binding[i].real.compare_exchange_strong(bound, real) || bound == real) {
      return function->thunk[i];
    }
  }
  return real;
}

}  // namespace tprof::resolve
