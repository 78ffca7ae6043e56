#include "interpose/base/environment.h"

#include <cerrno>
#include <cstddef>
#include <string_view>

#include "interpose/base/text.h"

extern "C" {
extern char** environ;  // NOLINT(readability-redundant-declaration)
// Points to the arguments as the kernel left them, followed by the environment. glibc's loader sets
// it first of all.
[[gnu::weak]] extern void* __libc_stack_end;
}

namespace tprof {
namespace {

char** as_the_kernel_left_it() {
  if (&__libc_stack_end == nullptr || __libc_stack_end == nullptr) return nullptr;
  auto** const words = static_cast<char**>(__libc_stack_end);
  const auto arguments = reinterpret_cast<std::size_t>(words[0]);
  return words + 1 + arguments + 1;
}

}  // namespace

char** environment() {
  if (environ != nullptr) return environ;
  // If libc already has the program's name, the program has cleared its environment itself.
  return *program_invocation_name == '\0' ? as_the_kernel_left_it() : nullptr;
}

const char* environment_value(const char* name) {
  const std::string_view wanted(name);
  for (char** e = environment(); e != nullptr && *e != nullptr; ++e) {
    const std::string_view entry(*e);
    if (entry.size() > wanted.size() && entry[wanted.size()] == '=' && entry.starts_with(wanted)) {
      return *e + wanted.size() + 1;
    }
  }
  return nullptr;
}

}  // namespace tprof
