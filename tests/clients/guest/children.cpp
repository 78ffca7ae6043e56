// Makes children in every way, while other threads call.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "world.h"

namespace guest {
namespace {

void wait_for(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) fail("waitpid");
  std::printf("child ended with %d\n", status);
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

int left_well(pid_t child) {
  int status = 0;
  const bool well = waitpid(child, &status, 0) == child && status == 0;
  if (!well) std::printf("a child ended with status %#x\n", static_cast<unsigned>(status));
  return well;
}

}  // namespace

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
    well += left_well(child);
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
    well += left_well(child);
  }
  std::printf("%d children left well\n", well);
  return 0;
}

}  // namespace guest
