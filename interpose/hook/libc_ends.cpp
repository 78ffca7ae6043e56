// libc's functions that end the program without its exit handlers, and those that execute another.
//
// Every process of the job gets here, with or without a GPU, even as a child of vfork, which shares
// its parent's memory, and in signal handlers. If there is nothing to close, these functions only
// pass calls on. The real ones are looked up when the library is loaded: later another thread may
// hold the loader's lock while this one forks.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>

#include "interpose/base/environment.h"
#include "interpose/base/held_signals.h"
#include "interpose/base/mapped_symbols.h"
#include "interpose/life/life.h"

#define TPROF_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Arguments = char* const*;

template <typename Function>
using Real = tprof::FunctionOnDemand<Function>;

constinit Real<void (*)(int)> g_exit("_exit");
constinit Real<void (*)(int)> g_Exit("_Exit");
constinit Real<int (*)(const char*, Arguments, Arguments)> g_execve("execve");
constinit Real<int (*)(const char*, Arguments)> g_execv("execv");
constinit Real<int (*)(const char*, Arguments)> g_execvp("execvp");
constinit Real<int (*)(const char*, Arguments, Arguments)> g_execvpe("execvpe");
constinit Real<int (*)(int, Arguments, Arguments)> g_fexecve("fexecve");

template <typename... Function>
void find(Real<Function>&... real) {
  (real.get(), ...);
}
[[gnu::constructor]] void find_real_ones() {
  find(g_exit, g_Exit, g_execve, g_execv, g_execvp, g_execvpe, g_fexecve);
}

[[noreturn]] void end(Real<void (*)(int)>& real, int status) {
  if (tprof::session::to_be_closed()) {
    tprof::session::note_exit_status(status);
    tprof::session::leave();
  }
  if (auto* const function = real.get()) function(status);
  for (;;) syscall(SYS_exit_group, status);
}

// Programs try the folders of PATH one by one (as Python's os.execvp), and go on if none has the
// file. So nothing is closed for a file that can't be executed.
bool executable(int folder, const char* path) {
  struct stat file {};  // the symbol stat came with glibc 2.33, and statx is not everywhere
  const int flags = folder >= 0 ? AT_EMPTY_PATH : 0;
  if (syscall(SYS_newfstatat, folder, path, &file, flags) != 0) return true;
  return S_ISREG(file.st_mode) && (folder >= 0 || access(path, X_OK) == 0);
}
bool executable(const char* path) {
  return access(path, X_OK) == 0 && executable(AT_FDCWD, path);
}

// Only libc searches PATH.
bool may_be_found(const char* name) {
  return std::strchr(name, '/') == nullptr || executable(name);
}

// `possible` returns whether the exec may succeed.
template <typename Possible, typename Execute>
int execute(Possible&& possible, Execute&& real) {
  if (!tprof::session::to_be_closed()) return real();
  {
    const tprof::KeepErrno keep_errno;
    if (!possible()) return real();
    tprof::session::leave();
  }
  const int result = real();
  const tprof::KeepErrno keep_errno;
  tprof::session::stay();
  return result;
}

template <typename Function, typename... A>
int call(Real<Function>& real, A... arguments) {
  if (auto* const function = real.get()) return function(arguments...);
  errno = ENOSYS;
  return -1;
}

}  // namespace

TPROF_EXPORT void _exit(int status) {
  end(g_exit, status);
}
TPROF_EXPORT void _Exit(int status) noexcept {
  end(g_Exit, status);
}

TPROF_EXPORT int execve(const char* path, Arguments argv, Arguments environment) noexcept {
  return execute([&] { return executable(path); },
                 [&] { return call(g_execve, path, argv, environment); });
}
TPROF_EXPORT int execv(const char* path, Arguments argv) noexcept {
  return execute([&] { return executable(path); }, [&] { return call(g_execv, path, argv); });
}
TPROF_EXPORT int execvp(const char* name, Arguments argv) noexcept {
  return execute([&] { return may_be_found(name); }, [&] { return call(g_execvp, name, argv); });
}
TPROF_EXPORT int execvpe(const char* name, Arguments argv, Arguments environment) noexcept {
  return execute([&] { return may_be_found(name); },
                 [&] { return call(g_execvpe, name, argv, environment); });
}
TPROF_EXPORT int fexecve(int fd, Arguments argv, Arguments environment) noexcept {
  return execute([&] { return executable(fd, ""); },
                 [&] { return call(g_fexecve, fd, argv, environment); });
}

// Makes an array of the call's arguments: `first` and the following ones, up to and including the
// null. It is on the stack, as in libc: a child of vfork must not allocate.
#define TPROF_EXECL(first, execute_them)                                              \
  std::size_t n = 1;                                                                  \
  va_list arguments;                                                                  \
  va_start(arguments, first);                                                         \
  while (va_arg(arguments, char*) != nullptr) ++n;                                    \
  va_end(arguments);                                                                  \
  auto** const argv = static_cast<char**>(__builtin_alloca((n + 1) * sizeof(char*))); \
  argv[0] = const_cast<char*>(first);                                                 \
  va_start(arguments, first);                                                         \
  for (std::size_t i = 1; i <= n; ++i) argv[i] = va_arg(arguments, char*);            \
  execute_them

TPROF_EXPORT int execl(const char* path, const char* first, ...) noexcept {
  TPROF_EXECL(first, va_end(arguments); return execv(path, argv);)
}
TPROF_EXPORT int execlp(const char* name, const char* first, ...) noexcept {
  TPROF_EXECL(first, va_end(arguments); return execvp(name, argv);)
}
TPROF_EXPORT int execle(const char* path, const char* first, ...) noexcept {
  TPROF_EXECL(first, auto* const environment = va_arg(arguments, char**); va_end(arguments);
              return execve(path, argv, environment);)
}
