// Preloaded behind libtprof.so: counts how often libtprof.so asks the loader to open and to close.
#include <dlfcn.h>

#include <atomic>
#include <cstring>

namespace {

std::atomic<long> g_opened{0};
std::atomic<long> g_closed{0};

bool is_tprof(const void* caller) {
  Dl_info info{};
  return dladdr(caller, &info) != 0 && std::strstr(info.dli_fname, "libtprof.so") != nullptr;
}

}  // namespace

extern "C" {

long count_loader_opened();
long count_loader_closed();

long count_loader_opened() {
  return g_opened;
}
long count_loader_closed() {
  return g_closed;
}

void* dlopen(const char* path, int flags) noexcept(noexcept(::dlopen(path, flags))) {
  static const auto real =
      reinterpret_cast<void* (*)(const char*, int)>(dlsym(RTLD_NEXT, "dlopen"));
  void* handle = real(path, flags);
  if (handle != nullptr && is_tprof(__builtin_return_address(0))) ++g_opened;
  return handle;
}
int dlclose(void* handle) noexcept {
  static const auto real = reinterpret_cast<int (*)(void*)>(dlsym(RTLD_NEXT, "dlclose"));
  if (is_tprof(__builtin_return_address(0))) ++g_closed;
  return real(handle);
}

}  // extern "C"
