// Many libraries call NCCL, as the extensions of a framework do. There is a thread for each plugin,
// and all threads call through all plugins, twice. Prints how often libtprof.so opened a library
// the second time, and how many of its handles are open.
//
//   callers PLUGIN...
#include <dlfcn.h>

#include <cstdio>
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

void call_through_all(const std::vector<Reduce>& reduce) {
  std::vector<std::thread> threads;
  std::latch all_here(static_cast<std::ptrdiff_t>(reduce.size()));
  for (std::size_t own = 0; own < reduce.size(); ++own) {
    threads.emplace_back([&, own] {
      all_here.arrive_and_wait();
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
  call_through_all(reduce);
  const long opened = ask("count_loader_opened");
  call_through_all(reduce);
  std::printf("reopened %ld\n", ask("count_loader_opened") - opened);
  std::printf("open %ld\n", ask("count_loader_opened") - ask("count_loader_closed"));
  std::printf("counted %d\n", opened > 0);
}
