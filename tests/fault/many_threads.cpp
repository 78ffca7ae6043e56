// Runs threads in numbers: short ones, and ones that call where few expect it. Prints how many
// calls it made; each is an all-gather of 8 float32 on one communicator that all threads share.
//
//   many_threads MODE N
//   MODE: shared     16 threads at once, N calls each
//         short      N threads, 16 at a time, one call each; prints how large the ring file is
//         destructor N threads that call in destructors of keys made before and after our own
//         exit       N threads that end between ncclGroupStart and ncclGroupEnd, two calls each
//         groups     N threads one by one, a group of two calls each; prints how many pages grew
//         turns      N threads one by one, 3,000 calls each, of a count that grows from 1 on
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <latch>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr int kAtOnce = 16;

ncclComm_t g_comm = nullptr;
std::atomic<unsigned long> g_calls{0};
pthread_key_t g_before;
pthread_key_t g_after;

void call(std::size_t count = 8) {
  static float data[256];
  if (ncclAllGather(data, data, count, ncclFloat32, g_comm, nullptr) != ncclSuccess) std::_Exit(99);
  ++g_calls;
}

void call_in_destructor(void*) {
  call();
}

template <typename F>
void at_once(int threads, const F& f) {
  std::vector<std::thread> running;
  running.reserve(static_cast<std::size_t>(threads));
  std::latch all_here(threads);
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&] {
      all_here.arrive_and_wait();
      f();
    });
  }
  for (std::thread& t : running) t.join();
}

void* leave_a_group_open(void*) {
  ncclGroupStart();
  call();
  call();
  pthread_exit(nullptr);
}

void* call_in_a_group(void*) {
  ncclGroupStart();
  call();
  call();
  ncclGroupEnd();
  return nullptr;
}

void one_after_the_other(int threads, void* (*f)(void*)) {
  for (int i = 0; i < threads; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, f, nullptr) != 0) std::_Exit(99);
    pthread_join(thread, nullptr);
  }
}

// Returns the pages of the address space.
long pages() {
  long n = 0;
  std::ifstream("/proc/self/statm") >> n;
  return n;
}

// Returns the status of the ring file; zeros where there is none.
struct stat ring_file() {
  struct stat file {};
  for (const auto& entry : std::filesystem::directory_iterator(std::getenv("TPROF_OUTPUT_DIR"))) {
    if (entry.path().extension() == ".ring") stat(entry.path().c_str(), &file);
  }
  return file;
}

}  // namespace

int main(int, char** argv) {
  const std::string_view mode = argv[1];
  const int n = std::atoi(argv[2]);
  pthread_key_create(&g_before, call_in_destructor);
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  if (ncclCommInitRank(&g_comm, 1, id, 0) != ncclSuccess) return 1;
  pthread_key_create(&g_after, call_in_destructor);
  if (mode == "shared") {
    at_once(kAtOnce, [&] {
      for (int i = 0; i < n; ++i) call();
    });
  } else if (mode == "short") {
    for (int i = 0; i < n; i += kAtOnce) at_once(kAtOnce, [] { call(); });
    std::printf("ring %ld\n", ring_file().st_size);
  } else if (mode == "turns") {
    for (int i = 1; i <= n; ++i) {
      std::thread([i] {
        for (int k = 0; k < 3000; ++k) call(static_cast<std::size_t>(i));
      }).join();
    }
  } else if (mode == "destructor") {
    for (int i = 0; i < n; ++i) {
      std::thread([] {
        pthread_setspecific(g_before, &g_comm);
        pthread_setspecific(g_after, &g_comm);
        call();
      }).join();
    }
  } else if (mode == "groups") {
    one_after_the_other(100, call_in_a_group);
    const long before = pages();
    one_after_the_other(n - 100, call_in_a_group);
    std::printf("pages %ld\n", pages() - before);
  } else {
    one_after_the_other(n, leave_a_group_open);
    call();
  }
  std::printf("calls %lu\n", g_calls.load());
}
