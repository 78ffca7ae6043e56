// A program that knows NCCL only through a plugin, which it opens and closes twice. Whatever took
// the library's place in between must not be called:
//
//   unloading PLUGIN
#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdio>

namespace {

// Takes the addresses that the library had, if they are free, so that it comes back at others.
void occupy(const void* library) {
  static_cast<void>(mmap(const_cast<void*>(library), 4096, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
}

}  // namespace

int main(int, char** argv) {
  for (int i = 0; i < 2; ++i) {
    void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) {
      std::fprintf(stderr, "unloading: %s\n", dlerror());
      return 99;
    }
    const auto reduce = reinterpret_cast<int (*)(int)>(dlsym(plugin, "plugin_all_reduces"));
    const auto where = reinterpret_cast<const void* (*)()>(dlsym(plugin, "plugin_library"));
    std::printf("%d calls\n", reduce(5));
    const void* library = where();
    dlclose(plugin);
    occupy(library);
  }
  return 0;
}
