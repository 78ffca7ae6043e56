// dlsym and dlvsym, for programs that take NCCL's and CUDA's functions by address.
//
// Both jump to the real function, so that RTLD_NEXT and RTLD_DEFAULT work for the caller: the
// loader uses the return address. They return a wrapper only if a handle is asked for a wrapped
// name.
//
// A preload before us that also wraps dlsym looks up the next one by libc's symbol version, which
// we lack, and would skip us. It gets one of ours, which then calls libc's.
#include <dlfcn.h>

#include <string_view>

#include "interpose/base/mapped_symbols.h"
#include "interpose/real/resolve.h"
#include "interpose/session/config.h"
#include "interpose/session/coverage.h"

// Returned in two registers: the address to jump to, and the value to return if that is null.
struct TprofAnswer {
  void* jump;
  void* value;
};
extern "C" {
[[gnu::used, gnu::visibility("hidden")]] TprofAnswer tprof_dlsym(void* handle, const char* name,
                                                                 const void* caller);
[[gnu::used, gnu::visibility("hidden")]] TprofAnswer tprof_dlsym_of_libc(void* handle,
                                                                         const char* name,
                                                                         const void* caller);
[[gnu::used, gnu::visibility("hidden")]] TprofAnswer tprof_dlvsym(void* handle, const char* name,
                                                                  const char* version,
                                                                  const void* caller);
[[gnu::visibility("hidden")]] void* tprof_next_dlsym(void* handle, const char* name);
}

namespace {

using tprof::Fn;
using tprof::Library;
namespace resolve = tprof::resolve;

constinit tprof::FunctionOnDemand<void* (*)(void*, const char*)> g_dlsym("dlsym");
constinit tprof::FunctionOnDemand<void* (*)(void*, const char*, const char*)> g_dlvsym("dlvsym");

// Returns the wrapped function that is looked up, or none. RTLD_NEXT and RTLD_DEFAULT find ours
// anyway, or are how another interposer finds the real one. Our own lookups are never answered with
// a wrapper.
Fn asked_for(const void* handle, const char* name, const void* caller) {
  if (name == nullptr || handle == RTLD_NEXT || handle == RTLD_DEFAULT) return Fn::none;
  const Fn fn = resolve::named(name);
  return fn == Fn::none || resolve::is_ours(caller) ? Fn::none : fn;
}

// A shim after us looks up the function that it wraps: its calls are within ours.
bool is_shim_behind_us(const void* caller, const char* name) {
  const void* const own = tprof::symbol_beside(caller, name);
  return own != nullptr && own == tprof::next_symbol(name);
}

void* to_give(Fn fn, void* found, const void* caller) {
  if (found == nullptr || resolve::is_ours(found)) return found;
  if (tprof::is_allocation(fn) && !tprof::opt_in::memory()) return found;
  const Library library = tprof::info(fn).library;
  const bool wrap = library == Library::cuda    ? resolve::wanted_of_driver(fn)
                    : library == Library::cupti ? tprof::opt_in::cupti()
                                                : tprof::opt_in::dlsym();
  void* const result = wrap ? resolve::bind(fn, found) : found;
  const bool counts = library == Library::nccl || library == Library::cudart;
  if (result == found && counts && !is_shim_behind_us(caller, tprof::info(fn).name.data())) {
    tprof::coverage::taken_by_address(fn, found);
  }
  return result;
}

TprofAnswer answer(void* (*dlsym)(void*, const char*), void* handle, const char* name,
                   const void* caller) {
  const Fn fn = asked_for(handle, name, caller);
  if (fn == Fn::none) return {reinterpret_cast<void*>(dlsym), nullptr};
  return {nullptr, to_give(fn, dlsym(handle, name), caller)};
}

}  // namespace

TprofAnswer tprof_dlsym(void* handle, const char* name, const void* caller) {
  return answer(g_dlsym.get(), handle, name, caller);
}

TprofAnswer tprof_dlsym_of_libc(void* handle, const char* name, const void* caller) {
  return answer(tprof::loader::own_dlsym(), handle, name, caller);
}

TprofAnswer tprof_dlvsym(void* handle, const char* name, const char* version, const void* caller) {
  const auto dlvsym = g_dlvsym.get();
  if (handle == RTLD_NEXT && name != nullptr && std::string_view(name) == "dlsym" &&
      tprof::is_before_us(caller)) {
    return {nullptr, reinterpret_cast<void*>(&tprof_next_dlsym)};
  }
  const Fn fn = asked_for(handle, name, caller);
  if (fn == Fn::none) return {reinterpret_cast<void*>(dlvsym), nullptr};
  return {nullptr, to_give(fn, dlvsym(handle, name, version), caller)};
}

// Each saves its arguments, calls the lookup, and jumps or returns.
#if defined(__x86_64__)
__asm__(
    ".text\n"
    ".macro TPROF_ASK name, ask, caller\n"
    ".globl \\name\n"
    ".type \\name, @function\n"
    "\\name:\n"
    ".cfi_startproc\n"
    "endbr64\n"
    "push %rdi\n"
    ".cfi_adjust_cfa_offset 8\n"
    "push %rsi\n"
    ".cfi_adjust_cfa_offset 8\n"
    "push %rdx\n"
    ".cfi_adjust_cfa_offset 8\n"
    "mov 24(%rsp), \\caller\n"
    "call \\ask\n"
    "mov %rax, %r11\n"
    "mov %rdx, %rax\n"
    "pop %rdx\n"
    ".cfi_adjust_cfa_offset -8\n"
    "pop %rsi\n"
    ".cfi_adjust_cfa_offset -8\n"
    "pop %rdi\n"
    ".cfi_adjust_cfa_offset -8\n"
    "test %r11, %r11\n"
    "jz 1f\n"
    "jmp *%r11\n"
    "1:\n"
    "ret\n"
    ".cfi_endproc\n"
    ".size \\name, . - \\name\n"
    ".endm\n"
    "TPROF_ASK dlsym, tprof_dlsym, %rdx\n"
    "TPROF_ASK tprof_next_dlsym, tprof_dlsym_of_libc, %rdx\n"
    "TPROF_ASK dlvsym, tprof_dlvsym, %rcx\n");
#elif defined(__aarch64__)
__asm__(
    ".text\n"
    ".macro TPROF_ASK name, ask, caller\n"
    ".globl \\name\n"
    ".type \\name, @function\n"
    "\\name:\n"
    ".cfi_startproc\n"
    "hint #34\n"  // bti c
    "stp x29, x30, [sp, #-48]!\n"
    ".cfi_def_cfa_offset 48\n"
    ".cfi_offset x29, -48\n"
    ".cfi_offset x30, -40\n"
    "mov x29, sp\n"
    "stp x0, x1, [sp, #16]\n"
    "str x2, [sp, #32]\n"
    "mov \\caller, x30\n"
    "bl \\ask\n"
    "mov x16, x0\n"
    "mov x17, x1\n"
    "ldp x0, x1, [sp, #16]\n"
    "ldr x2, [sp, #32]\n"
    "ldp x29, x30, [sp], #48\n"
    ".cfi_restore x29\n"
    ".cfi_restore x30\n"
    ".cfi_def_cfa_offset 0\n"
    "cbz x16, 1f\n"
    "br x16\n"
    "1:\n"
    "mov x0, x17\n"
    "ret\n"
    ".cfi_endproc\n"
    ".size \\name, . - \\name\n"
    ".endm\n"
    "TPROF_ASK dlsym, tprof_dlsym, x2\n"
    "TPROF_ASK tprof_next_dlsym, tprof_dlsym_of_libc, x2\n"
    "TPROF_ASK dlvsym, tprof_dlvsym, x3\n");
#else
#error "not ported to this architecture"
#endif
