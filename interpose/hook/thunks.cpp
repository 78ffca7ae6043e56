// The functions that a program gets when it takes a wrapped one by address (real/resolve.h): four
// for each. A thunk notes the return address and its own number (`bound` of its thread), and jumps
// to the wrapper. It changes neither the stack nor a register with an argument.
#include <atomic>
#include <cstddef>

#include "interpose/record/thread.h"

extern "C" {
[[gnu::visibility("hidden")]] extern std::atomic<void*> tprof_wrappers[];
std::atomic<void*> tprof_wrappers[tprof::kFunctionCount];
}

static_assert(offsetof(tprof::Thread, bound) + offsetof(tprof::resolve::Bound, caller) == 64 &&
              offsetof(tprof::Thread, bound) + offsetof(tprof::resolve::Bound, thunk) == 72 &&
              tprof::resolve::kBindings == 4);

#define ONE(...) "+4"
#define TWO(...) "+8"
#define TPROF_THUNKS(one, jump)                               \
  ".text\n"                                                   \
  ".balign 16\n"                                              \
  ".globl tprof_thunks\n"                                     \
  ".hidden tprof_thunks\n"                                    \
  ".type tprof_thunks, @function\n"                           \
  "tprof_thunks:\n"                                           \
  ".cfi_startproc\n"                                          \
  ".set number, 0\n"                                          \
  ".rept 4" TPROF_EVERY(ONE, TWO) "\n" one                    \
                                  ".balign 16\n"              \
                                  ".set number, number + 1\n" \
                                  ".endr\n"                   \
                                  "1:\n" jump                 \
                                  ".cfi_endproc\n"            \
                                  ".size tprof_thunks, . - tprof_thunks\n"

#if defined(__x86_64__)
__asm__(
    TPROF_THUNKS("endbr64\n"
                 "mov $number, %r11d\n"
                 "jmp 1f\n",
                 "mov _ZN5tprof8t_threadE@gottpoff(%rip), %r10\n"
                 "mov (%rsp), %rax\n"
                 "mov %rax, %fs:64(%r10)\n"
                 "mov %r11d, %fs:72(%r10)\n"
                 "shr $2, %r11d\n"
                 "lea tprof_wrappers(%rip), %r10\n"
                 "jmp *(%r10, %r11, 8)\n"));
#elif defined(__aarch64__)
__asm__(
    TPROF_THUNKS("hint #34\n"  // bti c
                 "mov w16, #number\n"
                 "b 1f\n",
                 "adrp x17, :gottprel:_ZN5tprof8t_threadE\n"
                 "ldr x17, [x17, #:gottprel_lo12:_ZN5tprof8t_threadE]\n"
                 "mrs x15, tpidr_el0\n"
                 "add x17, x17, x15\n"
                 "str x30, [x17, #64]\n"
                 "str w16, [x17, #72]\n"
                 "lsr w16, w16, #2\n"
                 "adrp x17, tprof_wrappers\n"
                 "add x17, x17, :lo12:tprof_wrappers\n"
                 "ldr x16, [x17, x16, lsl #3]\n"
                 "br x16\n"));
#else
#error "not ported to this architecture"
#endif
