#include "interpose/marks/walk.h"

#include <pthread.h>

#include <cstring>

#include "interpose/base/held_signals.h"
#include "interpose/marks/known_rules.h"
#include "interpose/real/binding.h"

namespace tprof::native {
namespace {

// The stack that may be read. A fiber has another stack, of which nothing is read.
struct Bounds {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;

  bool hold(std::uintptr_t address) const {
    return address >= begin && address < end && end - address >= sizeof(std::uintptr_t) &&
           address % alignof(std::uintptr_t) == 0;
  }
};
thread_local constinit Bounds t_stack __attribute__((tls_model("initial-exec")));

// Runs once for each thread. For the first thread, glibc reads /proc/self/maps.
[[gnu::noinline]] void find_stack() {
  const HeldSignals held_signals;
  const KeepErrno keep_errno;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* begin = nullptr;
  std::size_t size = 0;
  if (pthread_attr_getstack(&attributes, &begin, &size) == 0) {
    t_stack.begin = reinterpret_cast<std::uintptr_t>(begin);
    t_stack.end = t_stack.begin + size;
  }
  pthread_attr_destroy(&attributes);
}

struct Registers {
  std::uintptr_t code;
  std::uintptr_t stack;
  std::uintptr_t frame;
  std::uintptr_t back;  // the return address if it is not in memory: only in the innermost frame
};

// Returns the registers of the function that this is inlined into.
[[gnu::always_inline]] inline Registers here() {
  // The outputs are other registers than those that are read.
#if defined(__x86_64__)
  register std::uintptr_t code asm("rax");
  register std::uintptr_t stack asm("rcx");
  register std::uintptr_t frame asm("rdx");
  asm volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2"
               : "=r"(code), "=r"(stack), "=r"(frame));
  return {code, stack, frame, 0};
#else
  register std::uintptr_t code asm("x0");
  register std::uintptr_t stack asm("x1");
  register std::uintptr_t frame asm("x2");
  register std::uintptr_t back asm("x3");
  asm volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29\n\tmov %3, x30"
               : "=r"(code), "=r"(stack), "=r"(frame), "=r"(back));
  return {code, stack, frame, back};
#endif
}

std::uintptr_t word_at(std::uintptr_t address) {
  std::uintptr_t value;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a place in the thread's stack
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}

// A return address may be signed, in the bits above the address.
constexpr std::uintptr_t kAddressBits = (std::uintptr_t{1} << 48) - 1;

// Steps to the caller. False: the stack does not look as the rule says.
bool step(const Rule& rule, Registers& r) {
  constexpr std::int64_t kWordBytes = sizeof(std::uintptr_t);
  const auto behind = [](std::uintptr_t base, std::int16_t words) {
    return base + static_cast<std::uintptr_t>(words * kWordBytes);
  };
  std::uintptr_t end = behind(rule.from == Rule::End::stack ? r.stack : r.frame, rule.end);
  const auto readable = [&](std::uintptr_t at) { return at >= r.stack && t_stack.hold(at); };
  if (rule.from == Rule::End::saved) {
    if (!readable(end)) return false;
    end = word_at(end);
  }
  if (end <= r.stack || end > t_stack.end || end % kWordBytes != 0) return false;
  std::uintptr_t back = r.back;
  if (rule.saves_return) {
    const std::uintptr_t at = behind(end, rule.return_at);
    if (!readable(at)) return false;
    back = word_at(at);
  } else if (back == 0) {
    return false;
  }
  if (rule.frame_at != Rule::kKept) {
    const std::uintptr_t at =
        rule.frame_at == Rule::kAtItself ? r.frame : behind(end, rule.frame_at);
    if (!readable(at)) return false;
    r.frame = word_at(at);
  }
  r = {back & kAddressBits, end, r.frame, 0};
  return true;
}

}  // namespace

Stack walk(std::uintptr_t* to, std::size_t most) {
  Registers r = here();
  if (t_stack.end == 0) find_stack();
  Stack stack;
  if (!t_stack.hold(r.stack)) return {0, true};
  // The calling instruction lies before its return address, which may belong to another function.
  for (std::uintptr_t call = r.code;; call = r.code - 1) {
    const Rule rule = rule_of(call);
    if (rule.from == Rule::End::outermost) return stack;
    stack.cut = rule.from == Rule::End::unknown || !step(rule, r);
    if (stack.cut || r.code == 0) return stack;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address in the code
    if (stack.frames == 0 && resolve::is_ours(reinterpret_cast<const void*>(r.code - 1))) continue;
    if (stack.frames == most) return {most, true};
    to[stack.frames++] = r.code;
  }
}

}  // namespace tprof::native
