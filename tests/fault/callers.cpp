// Many libraries call NCCL, as the extensions of a framework do, and so does code that was made
// while the program runs. There is a thread for each plugin, at most 16, and all threads call
// through all plugins, twice. Prints how often libtprof.so opened a library the first and the
// second time, and how many of its handles are open.
//
//   callers PLUGIN...
#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <latch>
#include <thread>
#include <vector>

namespace {

using Reduce = int (*)(int);
using Count = long (*)();

long ask(const char* name) {
  const auto count = reinterpret_cast<Count>(dlsym(RTLD_DEFAULT, name));
  return count == nullptr ? 0 : count();
}

// Returns a function of no library that calls `function`.
Reduce made_at_run_time([[maybe_unused]] Reduce function) {
#if defined(__x86_64__)
  unsigned char code[] = {0x48, 0x83, 0xec, 8,    0x48, 0xb8, 0,
                          0,    0,    0,    0,    0,    0,    0,      // sub, movabs
                          0xff, 0xd0, 0x48, 0x83, 0xc4, 8,    0xc3};  // call, add, ret
  std::memcpy(code + 6, &function, sizeof function);
  void* page =
      mmap(nullptr, sizeof code, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memcpy(page, code, sizeof code);
  mprotect(page, sizeof code, PROT_READ | PROT_EXEC);
  return reinterpret_cast<Reduce>(page);
#else
  return function;
#endif
}

void call_through_all(const std::vector<Reduce>& reduce, const std::vector<Reduce>& made) {
  const std::size_t at_once = std::min<std::size_t>(reduce.size(), 16);
  std::vector<std::thread> threads;
  std::latch all_here(static_cast<std::ptrdiff_t>(at_once));
  for (std::size_t own = 0; own < at_once; ++own) {
    threads.emplace_back([&, own] {
      all_here.arrive_and_wait();
      for (Reduce call : made) call(0);
      // Two threads at a time begin with the same plugin.
      for (std::size_t i = 0; i < reduce.size(); ++i) reduce[(own / 2 + i) % reduce.size()](2);
    });
  }
  for (std::thread& t : threads) t.join();
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Reduce> reduce;
  for (int i = 1; i < argc; ++i) {
    void* plugin = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) return 99;
    reduce.push_back(reinterpret_cast<Reduce>(dlsym(plugin, "plugin_all_reduces")));
  }
  std::vector<Reduce> made;
  for (const char* name : {"ncclGroupStart", "ncclGroupEnd"}) {
    made.push_back(made_at_run_time(reinterpret_cast<Reduce>(dlsym(RTLD_DEFAULT, name))));
  }
  call_through_all(reduce, made);
  const long opened = ask("count_loader_closed");
  call_through_all(reduce, made);
  std::printf("opened %ld\n", opened);
  std::printf("reopened %ld\n", ask("count_loader_closed") - opened);
}
