// Makes all-reduces of one rank from known functions. For each it prints the count, and the
// functions and lines that it was called from, innermost first.
//
// stacks [PLUGIN [DEPTH]]
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

ncclComm_t g_comm = nullptr;
float* g_data = nullptr;

struct Place {
  const char* function;
  int line;
};
thread_local std::vector<Place> t_stack;

void must(bool ok) {
  if (!ok) std::abort();
}

void print(std::size_t count) {
  std::printf("%zu", count);
  for (auto p = t_stack.rbegin(); p != t_stack.rend(); ++p) {
    std::printf(" %s:%d", p->function, p->line);
  }
  std::puts("");
}

// Its destructor runs after the call, so that the compiler can't turn the call into a jump.
class Here {
 public:
  Here(const char* function, int line) { t_stack.push_back({function, line}); }
  ~Here() { t_stack.pop_back(); }
  Here(const Here&) = delete;
  Here& operator=(const Here&) = delete;
};
#define FROM_HERE(...)                    \
  do {                                    \
    const Here here_(__func__, __LINE__); \
    __VA_ARGS__;                          \
  } while (false)

[[gnu::noinline]] void reduce(std::size_t n) {
  const Here here(__func__, __LINE__ + 2);
  print(n);
  must(ncclAllReduce(g_data, g_data, n, ncclFloat, ncclSum, g_comm, nullptr) == ncclSuccess);
}

[[gnu::noinline]] void inner(std::size_t count) {
  FROM_HERE(reduce(count));
}
[[gnu::always_inline]] inline void inlined(std::size_t count) {
  FROM_HERE(inner(count));
}
[[gnu::noinline]] void outer(std::size_t count) {
  FROM_HERE(inlined(count));
}

// Takes arguments on the stack, and realigns the stack for its data.
[[gnu::noinline]] void realigned(std::size_t count, int, int, int, int, int, int, int last) {
  alignas(128) volatile char data[256];
  data[last] = 1;
  FROM_HERE(inner(count));
  data[0] = data[last];
}

// Has data on the stack whose size only the caller knows.
[[gnu::noinline]] void sized(std::size_t count, std::size_t size) {
  auto* data = static_cast<volatile char*>(__builtin_alloca(size));
  data[size - 1] = 1;
  FROM_HERE(inner(count));
  data[0] = data[size - 1];
}

[[gnu::noinline]] void deep(int left, std::size_t count) {
  if (left == 0) {
    FROM_HERE(inner(count));
  } else {
    FROM_HERE(deep(left - 1, count));
  }
}

void through(const char* plugin) {
  void* library = dlopen(plugin, RTLD_NOW);
  must(library != nullptr);
  using Through = void (*)(void (*)(std::size_t), std::size_t);
  const auto call = reinterpret_cast<Through>(dlsym(library, "through_plugin"));
  call(inner, 16);
  dlclose(library);
  FROM_HERE(inner(17));
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::size_t kBytes = 4096;
  must(cudaMalloc(reinterpret_cast<void**>(&g_data), kBytes) == cudaSuccess);
  must(ncclCommInitAll(&g_comm, 1, nullptr) == ncclSuccess);
  for (int i = 0; i < 3; ++i) FROM_HERE(outer(11));
  std::thread([] { inner(12); }).join();
  FROM_HERE(deep(argc > 2 ? std::atoi(argv[2]) : 40, 13));
  FROM_HERE(realigned(14, 1, 2, 3, 4, 5, 6, 7));
  FROM_HERE(sized(15, 1000));
  if (argc > 1) through(argv[1]);
  must(ncclCommDestroy(g_comm) == ncclSuccess);
}
