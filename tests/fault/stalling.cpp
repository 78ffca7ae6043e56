// Preloaded behind libtprof.so: a file system that has stopped answering. The function that STALL
// names ("all": each of them) does not return for files below STALL_DIR, once there is a file
// STALL_FROM (unset: from the beginning).
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

void stand_at(std::string_view function, const char* path) {
  const std::string_view stalls = variable("STALL");
  if (path == nullptr || (stalls != function && stalls != "all")) return;
  const std::string_view from = variable("STALL_FROM");
  if (!std::string_view(path).starts_with(variable("STALL_DIR")) ||
      (!from.empty() && syscall(SYS_faccessat, AT_FDCWD, from.data(), F_OK) != 0)) {
    return;
  }
  for (;;) pause();
}

void stand_at(std::string_view function, int fd) {
  char link[64];
  char path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, sizeof path - 1);
  if (n <= 0) return;
  path[n] = '\0';
  stand_at(function, path);
}

}  // namespace

#define STALLING(result, name, parameters, arguments, file, qualifier)                        \
  extern "C" result name parameters qualifier {                                               \
    static const auto real = reinterpret_cast<result(*) parameters>(dlsym(RTLD_NEXT, #name)); \
    stand_at(#name, file);                                                                    \
    return real arguments;                                                                    \
  }

STALLING(int, mkdir, (const char* path, mode_t mode), (path, mode), path, noexcept)
STALLING(int, unlink, (const char* path), (path), path, noexcept)
STALLING(int, rename, (const char* path, const char* to), (path, to), path, noexcept)
STALLING(int, statfs, (const char* path, struct statfs* fs), (path, fs), path, noexcept)
STALLING(int, fstatfs, (int fd, struct statfs* fs), (fd, fs), fd, noexcept)
STALLING(int, close, (int fd), (fd), fd, )
STALLING(int, fsync, (int fd), (fd), fd, )
STALLING(int, ftruncate, (int fd, off_t size), (fd, size), fd, noexcept)
STALLING(int, fallocate, (int fd, int mode, off_t at, off_t size), (fd, mode, at, size), fd, )
STALLING(ssize_t, pread, (int fd, void* to, size_t n, off_t at), (fd, to, n, at), fd, )
STALLING(ssize_t, pwrite, (int fd, const void* from, size_t n, off_t at), (fd, from, n, at), fd, )

extern "C" int open(const char* path, int flags, ...) {
  static const auto real =
      reinterpret_cast<int (*)(const char*, int, ...)>(dlsym(RTLD_NEXT, "open"));
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = va_arg(arguments, mode_t);
  va_end(arguments);
  stand_at("open", path);
  return real(path, flags, mode);
}

// The library asks for a file's facts by the system call itself.
extern "C" long syscall(long number, ...) noexcept {
  static const auto real = reinterpret_cast<long (*)(long, ...)>(dlsym(RTLD_NEXT, "syscall"));
  va_list arguments;
  va_start(arguments, number);
  long a[6];
  for (long& argument : a) argument = va_arg(arguments, long);
  va_end(arguments);
  if (number == SYS_newfstatat) {
    const char* path = reinterpret_cast<const char*>(a[1]);
    path[0] == '\0' ? stand_at("stat", static_cast<int>(a[0])) : stand_at("stat", path);
  }
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
