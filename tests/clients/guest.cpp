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
#include <dlfcn.h>
#include <nccl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <memory>
#include <stdexcept>
#include <thread>

#include "guest_state.h"

namespace {

using guest::print;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "guest: %s failed\n", what);
  std::_Exit(99);
}

constexpr std::size_t kBytes = 4096;

struct World {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  char* from = nullptr;
  char* to = nullptr;
  char host[kBytes] = {};
};

// Makes a call, and prints what its caller finds afterwards.
template <typename F>
void call(const char* name, F&& f) {
  constexpr int kMark = 77;
  std::feclearexcept(FE_ALL_EXCEPT);
  errno = kMark;
  const int result = static_cast<int>(f());
  const int error = errno;
  const std::string floating_point = guest::floating_point();
  std::printf("%s: returned %d, errno %d, last error %d, floating point %s\n", name, result, error,
              cudaPeekAtLastError(), floating_point.c_str());
}

void world_of_one(World& w) {
  ncclUniqueId id;
  call("ncclGetUniqueId", [&] { return ncclGetUniqueId(&id); });
  call("ncclCommInitRank", [&] { return ncclCommInitRank(&w.comm, 1, id, 0); });
}

void copies(World& w) {
  call("cudaMemcpy", [&] { return cudaMemcpy(w.to, w.host, kBytes, cudaMemcpyHostToDevice); });
  call("cudaMemcpyAsync",
       [&] { return cudaMemcpyAsync(w.host, w.to, 64, cudaMemcpyDeviceToHost, w.stream); });
  call("cudaMemcpyAsync, default",
       [&] { return cudaMemcpyAsync(w.host, w.to, 64, cudaMemcpyDefault, w.stream); });
  call("cudaMemcpy2D",
       [&] { return cudaMemcpy2D(w.to, 64, w.host, 64, 32, 8, cudaMemcpyHostToDevice); });
  void* pinned = nullptr;
  call("cudaMallocHost", [&] { return cudaMallocHost(&pinned, 64); });
  call("cudaMemcpy, pinned", [&] { return cudaMemcpy(pinned, w.to, 64, cudaMemcpyDefault); });
  call("cudaFreeHost", [&] { return cudaFreeHost(pinned); });
  call("cudaStreamSynchronize", [&] { return cudaStreamSynchronize(w.stream); });
}

void collectives(World& w) {
  call("ncclAllGather",
       [&] { return ncclAllGather(w.from, w.to, 64, ncclFloat32, w.comm, w.stream); });
  call("ncclReduceScatter",
       [&] { return ncclReduceScatter(w.from, w.to, 64, ncclInt32, ncclSum, w.comm, w.stream); });
  call("refused ncclBroadcast",
       [&] { return ncclBroadcast(w.from, w.to, 64, ncclInt8, 5, w.comm, w.stream); });
  call("ncclGroupStart", [] { return ncclGroupStart(); });
  call("grouped ncclSend", [&] { return ncclSend(w.from, 64, ncclInt8, 0, w.comm, w.stream); });
  call("grouped ncclRecv", [&] { return ncclRecv(w.to, 64, ncclInt8, 0, w.comm, w.stream); });
  call("ncclGroupEnd", [] { return ncclGroupEnd(); });
  call("cudaStreamSynchronize", [&] { return cudaStreamSynchronize(w.stream); });
}

void graph(World& w) {
  cudaGraph_t captured = nullptr;
  cudaGraphExec_t executable = nullptr;
  call("cudaStreamBeginCapture",
       [&] { return cudaStreamBeginCapture(w.stream, cudaStreamCaptureModeGlobal); });
  call("captured ncclAllGather",
       [&] { return ncclAllGather(w.from, w.to, 64, ncclFloat32, w.comm, w.stream); });
  call("captured cudaMemcpyAsync",
       [&] { return cudaMemcpyAsync(w.to, w.from, 64, cudaMemcpyDeviceToDevice, w.stream); });
  call("cudaStreamEndCapture", [&] { return cudaStreamEndCapture(w.stream, &captured); });
  call("cudaGraphInstantiate", [&] { return cudaGraphInstantiate(&executable, captured, 0); });
  call("cudaGraphLaunch", [&] { return cudaGraphLaunch(executable, w.stream); });
  call("cudaStreamSynchronize", [&] { return cudaStreamSynchronize(w.stream); });
  call("cudaGraphExecDestroy", [&] { return cudaGraphExecDestroy(executable); });
  call("cudaGraphDestroy", [&] { return cudaGraphDestroy(captured); });
}

std::atomic<int> g_signals{0};

// Handles every signal that can be caught, so that a tracer's signal would be seen.
void catch_all() {
  for (int signal = 1; signal < SIGRTMIN; ++signal) {
    if (signal == SIGKILL || signal == SIGSTOP || signal == SIGCHLD) continue;
    struct sigaction action {};
    action.sa_handler = [](int) { g_signals.fetch_add(1); };
    sigaction(signal, &action, nullptr);
  }
}

// Runs a thread with settings of its own, which calls and then waits for the end.
void peculiar_thread(World& w, std::latch& called, std::latch& end) {
  pthread_setname_np(pthread_self(), "peculiar");
  sigset_t some;
  sigemptyset(&some);
  sigaddset(&some, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &some, nullptr);
  cpu_set_t first;
  CPU_ZERO(&first);
  sched_getaffinity(0, sizeof first, &first);
  int core = 0;
  while (!CPU_ISSET(core, &first)) ++core;
  CPU_ZERO(&first);
  CPU_SET(core, &first);
  sched_setaffinity(0, sizeof first, &first);
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 5);
  cudaMemcpy(w.to, w.host, 16, cudaMemcpyHostToDevice);
  called.count_down();
  end.wait();
}

void make(World& w) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, kBytes) != cudaSuccess) fail("cudaMalloc");
  w.from = static_cast<char*>(memory);
  if (cudaMalloc(&memory, kBytes) != cudaSuccess) fail("cudaMalloc");
  w.to = static_cast<char*>(memory);
}

// Prints the number of the next stream, the memory that is left and the active contexts.
void print_device() {
  cudaStream_t next = nullptr;
  unsigned long long id = 0;
  if (cudaStreamCreate(&next) != cudaSuccess || cudaStreamGetId(next, &id) != cudaSuccess) {
    fail("cudaStreamCreate");
  }
  print("device", "number of the next stream", std::to_string(id));
  std::size_t free_bytes = 0;
  std::size_t all = 0;
  cudaMemGetInfo(&free_bytes, &all);
  print("device", "memory left", std::to_string(free_bytes));
  std::string contexts;
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
  using GetState = int (*)(int, unsigned*, int*);
  const auto state = reinterpret_cast<GetState>(
      driver == nullptr ? nullptr : dlsym(driver, "cuDevicePrimaryCtxGetState"));
  for (int device = 0; state != nullptr; ++device) {
    unsigned flags = 0;
    int active = 0;
    if (state(device, &flags, &active) != 0) break;
    contexts += active != 0 ? "+" : "-";
  }
  print("device", "contexts", contexts);
}

int walk() {
  std::fesetround(FE_UPWARD);
  umask(027);
  if (dlopen("libcuda.so.1", RTLD_LAZY) == nullptr) fail("dlopen");  // as PyTorch does
  if (chdir("/") != 0) fail("chdir");
  catch_all();
  World w;
  make(w);
  // An error that the program has not looked at yet must still be there when it does.
  call("cudaSetDevice", [] { return cudaSetDevice(99); });
  guest::print_state("before");
  copies(w);
  guest::print_state("after the first calls");
  call("cudaGetLastError", [] { return cudaGetLastError(); });
  call("refused cudaMemcpy",
       [&] { return cudaMemcpy(w.to, w.host, 16, static_cast<cudaMemcpyKind>(9)); });
  world_of_one(w);
  call("cudaGetLastError", [] { return cudaGetLastError(); });
  call("cudaStreamCreate", [&] { return cudaStreamCreate(&w.stream); });
  collectives(w);
  copies(w);
  std::latch called(1);
  std::latch end(1);
  World other;
  make(other);
  std::thread peculiar([&] { peculiar_thread(other, called, end); });
  called.wait();
  guest::print_state("with threads");
  end.count_down();
  peculiar.join();
  graph(w);
  guest::print_state("after the graph");
  print_device();
  guest::print_state("at the end");
  call("ncclCommDestroy", [&] { return ncclCommDestroy(w.comm); });
  call("cudaStreamDestroy", [&] { return cudaStreamDestroy(w.stream); });
  print("at the end", "signals", std::to_string(g_signals.load()));
  std::fputs("guest: a line of its own\n", stderr);
  return 7;
}

void wait_for(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) fail("waitpid");
  std::printf("child ended with %d\n", status);
}

int children() {
  World w;
  make(w);
  copies(w);
  char env[] = "/usr/bin/env";
  char* const arguments[] = {env, nullptr};
  std::fflush(stdout);
  if (const pid_t child = fork(); child == 0) {
    execv(env, arguments);
    _exit(127);
  } else {
    wait_for(child);
  }
  std::fflush(stdout);
  std::printf("system returned %d\n", std::system("env; ls -l /proc/self/fd | wc -l"));
  std::fflush(stdout);
  pid_t spawned = 0;
  if (posix_spawn(&spawned, env, nullptr, nullptr, arguments, environ) != 0) fail("posix_spawn");
  wait_for(spawned);
  return 0;
}

// Returns when all of them have called.
void busy_threads(int n, const std::atomic<bool>& stop, std::vector<std::thread>& running) {
  static std::latch called(n);
  for (int i = 0; i < n; ++i) {
    running.emplace_back([&stop] {
      World w;
      make(w);
      cudaMemcpy(w.to, w.host, 64, cudaMemcpyHostToDevice);
      called.count_down();
      while (!stop.load()) cudaMemcpy(w.to, w.host, 64, cudaMemcpyHostToDevice);
    });
  }
  called.wait();
}

// Does what libc allows in the child of a program with threads, and more, as far as libc supports
// it.
[[noreturn]] void live_in_child(int n) {
  constexpr unsigned kDeadlock = 20;  // s; a lock that is held for so long is a deadlock
  alarm(kDeadlock);
  for (std::size_t size = 1; size < 100'000; size *= 3) {
    std::string text(size, 'x');
    if (text.back() != 'x') _exit(1);
  }
  if (n % 3 == 0) _exit(0);
  World w;
  make(w);
  for (int i = 0; i < 10; ++i) cudaMemcpy(w.to, w.host, 64, cudaMemcpyHostToDevice);
  if (n % 3 == 1) _exit(0);
  std::exit(0);
}

int forks(int n) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> running;
  busy_threads(3, stop, running);
  int well = 0;
  for (int i = 0; i < n; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      for (const std::string& file : guest::files()) {
        for (const char* ours : {".ring", ".json", ".snapshot"}) {
          if (file.ends_with(ours)) _exit(2);  // it belongs to the parent's tracer
        }
      }
      live_in_child(i);
    }
    int status = 0;
    if (waitpid(child, &status, 0) == child && status == 0) ++well;
  }
  stop = true;
  for (std::thread& thread : running) thread.join();
  std::printf("%d children left well\n", well);
  return 0;
}

// Each of N processes forks while one of its threads makes the process's first call.
int forks_at_the_start(int n) {
  int well = 0;
  for (int i = 0; i < n; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      World w;
      make(w);
      std::latch go(2);
      std::thread first([&] {
        go.arrive_and_wait();
        cudaMemcpy(w.to, w.host, 64, cudaMemcpyHostToDevice);
      });
      go.arrive_and_wait();
      for (int spin = 0; spin < i * 20; ++spin) sched_yield();
      const pid_t grandchild = fork();
      if (grandchild == 0) live_in_child(2);
      int status = 0;
      waitpid(grandchild, &status, 0);
      first.join();
      _exit(status == 0 ? 0 : 1);
    }
    int status = 0;
    if (waitpid(child, &status, 0) == child && status == 0) ++well;
  }
  std::printf("%d children left well\n", well);
  return 0;
}

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
