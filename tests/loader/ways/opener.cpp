// Opens libraries, each as the word before it says, and has them make their calls:
//
//   ways_opener (local | global | deepbind | again | namespace) LIBRARY...
//
// again: the library is opened, closed, and opened once more.
// namespace: it is opened by dlmopen, with libraries of its own.
#include <dlfcn.h>

#include <cstdio>
#include <string_view>

namespace {

void* open(const char* path, int flags, bool apart = false) {
  void* library = apart ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW) : dlopen(path, RTLD_NOW | flags);
  if (library == nullptr) std::fprintf(stderr, "ways_opener: %s\n", dlerror());
  return library;
}

bool run(void* library) {
  if (library == nullptr) return false;
  void* calls = dlsym(library, "ways_calls");
  return calls != nullptr && reinterpret_cast<int (*)()>(calls)() == 0;
}

}  // namespace

int main(int argc, char** argv) {
  bool well = argc > 2;
  for (int i = 1; well && i + 1 < argc; i += 2) {
    const std::string_view how(argv[i]);
    const int flags = how == "global"     ? RTLD_GLOBAL
                      : how == "deepbind" ? RTLD_LOCAL | RTLD_DEEPBIND
                                          : RTLD_LOCAL;
    void* library = open(argv[i + 1], flags, how == "namespace");
    well = run(library);
    if (how == "again" && well) {
      dlclose(library);
      well = run(open(argv[i + 1], flags));
    }
  }
  return well ? 0 : 1;
}
