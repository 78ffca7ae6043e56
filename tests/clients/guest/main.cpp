// Looks at itself while it calls NCCL and CUDA, and prints what it sees. A tracer must not change
// that: the output is compared with that of the same program without a tracer.
//
//   guest walk             calls of every kind, one after the other
//   guest children         the environment of children, by fork and exec, system and posix_spawn
//   guest forks N          N children, forked while three threads call
//   guest forkstart N      N times a fork while another thread makes the first call
//   guest usage THREADS CALLS   what it used: memory, page faults, context switches
//   guest starved          with a low file size limit, and nobody who reads standard error
//   guest closed           with standard input and error closed, and other files in their place
//   guest end HOW          exit, _exit, quick_exit, abort, segv, throw
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <latch>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "interpose/user/tprof.h"
#include "world.h"

using namespace guest;

namespace {

int usage(int threads, int calls) {
  std::vector<std::thread> running;
  running.reserve(static_cast<std::size_t>(threads));
  std::latch end(threads);
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&end, calls] {
      World w;
      make(w);
      for (int n = 0; n < calls; ++n) cudaMemcpy(w.to, w.host, 64, cudaMemcpyHostToDevice);
      end.arrive_and_wait();
    });
  }
  for (std::thread& thread : running) thread.join();
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const std::string status = "\n" + guest::contents("/proc/self/status");
  std::printf("resident_kb %s\n", guest::field(status, "VmRSS").c_str());
  std::printf("anonymous_kb %s\n", guest::field(status, "RssAnon").c_str());
  std::printf("faults %ld\nmajor_faults %ld\n", used.ru_minflt, used.ru_majflt);
  std::printf("voluntary_switches %ld\ninvoluntary_switches %ld\n", used.ru_nvcsw, used.ru_nivcsw);
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  std::printf("ends_ns %lld\n", static_cast<long long>(now.tv_sec) * 1'000'000'000 + now.tv_nsec);
  return 0;
}

int starved() {
  catch_all();
  int ends[2];
  if (pipe(ends) != 0) fail("pipe");
  close(ends[0]);
  dup2(ends[1], STDERR_FILENO);
  const rlimit little{rlim_t{1} << 18, rlim_t{1} << 18};
  setrlimit(RLIMIT_FSIZE, &little);
  World w;
  make(w);
  for (int n = 0; n < 20'000; ++n) cudaMemcpy(w.to, w.host, 64, cudaMemcpyHostToDevice);
  std::printf("%d signals\n", g_signals.load());
  return 7;
}

// Closes standard input and error, as a daemon does, so that the next files get their numbers.
int closed() {
  close(STDIN_FILENO);
  close(STDERR_FILENO);
  World w;
  make(w);
  copies(w);
  // The library's first files are made meanwhile, and have low numbers for a moment.
  tprof_flush(60'000);
  const int first = open("/dev/null", O_RDONLY);
  const int second = open("/dev/null", O_WRONLY);
  const int third = open("/dev/null", O_WRONLY);
  std::printf("files of its own: %d %d %d\n", first, second, third);
  return 0;
}

int end(std::string_view how) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  World w;
  make(w);
  copies(w);
  std::fflush(stdout);
  if (how == "_exit") _exit(5);
  if (how == "quick_exit") std::quick_exit(6);
  if (how == "abort") std::abort();
  if (how == "segv") std::raise(SIGSEGV);
  if (how == "throw") throw std::runtime_error("nobody catches this");
  return 4;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  const auto number = [&](int i) { return i < argc ? std::atoi(argv[i]) : 0; };
  if (mode == "walk") return walk();
  if (mode == "children") return children();
  if (mode == "forks") return forks(number(2));
  if (mode == "forkstart") return forks_at_the_start(number(2));
  if (mode == "usage") return usage(number(2), number(3));
  if (mode == "starved") return starved();
  if (mode == "closed") return closed();
  if (mode == "end" && argc > 2) return end(argv[2]);
  fail("reading the arguments");
}
