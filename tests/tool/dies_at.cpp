// Preloaded, it kills the process at its DIES_AT-th moment (from 1). One moment is before and one
// is after each call that changes a file, and one is in the middle of a pwrite().
#include <dlfcn.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace {

int g_moment = 0;

void moment() {
  const char* at = std::getenv("DIES_AT");
  if (at != nullptr && ++g_moment == std::atoi(at)) raise(SIGKILL);
}

template <typename F>
F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

template <typename F, typename... Args>
auto change(const char* name, Args... args) {
  moment();
  const auto result = next<F>(name)(args...);
  moment();
  return result;
}

}  // namespace

extern "C" {

ssize_t pwrite(int fd, const void* from, size_t n, off_t at) {
  moment();
  const auto real = next<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  const ssize_t half = real(fd, from, n / 2, at);
  moment();
  if (half < 0) return half;
  const ssize_t rest =
      real(fd, static_cast<const char*>(from) + half, n - static_cast<size_t>(half), at + half);
  moment();
  return rest < 0 ? rest : half + rest;
}
int ftruncate(int fd, off_t size) noexcept {
  return change<int(int, off_t)>("ftruncate", fd, size);
}
int fsync(int fd) {
  return change<int(int)>("fsync", fd);
}
int remove(const char* path) noexcept {
  return change<int(const char*)>("remove", path);
}
}
