// Ends a traced process in many ways, after 150 rounds on two threads, one of which lives on.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <latch>
#include <stdexcept>
#include <thread>

#include "caller.h"
#include "interpose/format/snapshot.h"
#include "interpose/user/tprof.h"
#include "modes.h"

namespace fault {
namespace {

// Executes a shell that exits with 3.
[[noreturn]] void execute() {
  char name[] = "sh";
  char option[] = "-c";
  char command[] = "exit 3";
  char* const arguments[] = {name, option, command, nullptr};
  execv("/bin/sh", arguments);
  fail("executing a shell");
}

// Makes a child that shares our memory until it ends, and ends by the functions that would end us.
void child_in_our_memory() {
  // NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): what is to be tried
  const pid_t child = vfork();
  if (child == 0) {
    _exit(5);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 5) fail("a child by vfork");
}

[[noreturn]] void leave_by(std::string_view how) {
  if (how == "exit") std::exit(3);
  if (how == "_exit") _exit(3);
  if (how == "_Exit") std::_Exit(3);
  if (how == "exec") execute();
  if (how == "raw") syscall(SYS_exit_group, 3);
  if (how == "quick_exit") std::quick_exit(3);
  if (how == "abort") std::abort();
  if (how == "throw") throw std::runtime_error("nobody catches this");
  if (how == "segv") raise(SIGSEGV);
  if (how == "term" || how.starts_with("handled")) raise(SIGTERM);
  if (how == "kill") raise(SIGKILL);
  if (how == "becomes cat") {
    // Goes past libc's functions, as a program without them would.
    const char* const arguments[] = {"cat", nullptr};
    syscall(SYS_execve, "/bin/cat", arguments, environ);
  }
  fail("ending");
}

// Exits in the handler, like a program that saves a checkpoint when the scheduler warns it.
void exit_in_handler(int) {
  std::exit(4);
}
void leave_in_handler(int) {
  _exit(4);
}
void quit_in_handler(int) {
  std::quick_exit(4);
}
// Never returns, like a program that is not done when the scheduler loses patience.
void never_return(int) {
  constexpr char kText[] = "terminating\n";
  if (write(STDOUT_FILENO, kText, sizeof kText - 1) < 0) _exit(99);
  for (;;) pause();
}

void call_at_exit() {
  static Caller caller(new_communicator(), 3);
  caller.rounds(20);
}
struct CallsWhenDestroyed {
  Caller* caller = nullptr;
  ~CallsWhenDestroyed() {
    if (caller != nullptr) caller->rounds(20);
  }
};
CallsWhenDestroyed g_static;

// Steps one of the clocks of trouble.cpp.
void step_clock(const char* variable, std::int64_t ns) {
  void* step = dlsym(RTLD_DEFAULT, variable);
  if (step == nullptr) fail("finding trouble.cpp's clock");
  static_cast<std::atomic<std::int64_t>*>(step)->store(ns);
}

// Pins the thread, as frameworks do with the one that launches kernels.
void pin_to_the_last_core() {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &allowed)) --last;
  CPU_ZERO(&allowed);
  CPU_SET(last, &allowed);
  if (sched_setaffinity(0, sizeof allowed, &allowed) != 0) fail("pinning");
}

// Waits until the snapshot of this generation is whole.
void wait_for_snapshot(std::uint64_t generation) {
  std::error_code not_yet;  // the library's thread makes the folder
  for (;; usleep(1000)) {
    for (const auto& file :
         std::filesystem::directory_iterator(std::getenv("TPROF_OUTPUT_DIR"), not_yet)) {
      if (file.path().extension() != ".snapshot") continue;
      std::ifstream in(file.path(), std::ios::binary);
      in.seekg(static_cast<std::streamoff>(tprof::snapshot_entry_at(generation)));
      tprof::SnapshotEntry entry{};
      if (in.read(reinterpret_cast<char*>(&entry), sizeof entry) &&
          entry.generation == generation && entry.sum == tprof::checksum(entry)) {
        return;
      }
    }
  }
}

// Starts a second thread, which makes calls and then stays where it is.
void park_a_thread() {
  static std::latch called(1);
  std::thread([] {
    Caller caller(new_communicator(), 2);
    caller.rounds(50);
    called.count_down();
    for (;;) pause();
  }).detach();
  called.wait();
}

}  // namespace

int end(std::string_view how, std::string_view where) {
  if (how == "handled") std::signal(SIGTERM, exit_in_handler);
  if (how == "handled by _exit") std::signal(SIGTERM, leave_in_handler);
  if (how == "handled by quick_exit") std::signal(SIGTERM, quit_in_handler);
  if (how == "stubborn") std::signal(SIGTERM, never_return);
  if (where == "pinned") pin_to_the_last_core();
  static Caller caller(new_communicator(), 1);
  caller.rounds(100);
  tprof_flush(1000);  // its files are there, unless they can't be
  park_a_thread();
  if (where == "step") {
    // The step is an hour, as after an administrator's change or a first answer of NTP.
    step_clock("trouble_realtime_step_ns", 3'600'000'000'000);
    caller.rounds(50);
  }
  if (where == "11 s later") step_clock("trouble_monotonic_step_ns", 11'000'000'000);
  if (constexpr std::string_view kSnapshots = "snapshots "; where.starts_with(kSnapshots)) {
    const auto n = static_cast<std::uint64_t>(std::atoi(where.data() + kSnapshots.size()));
    for (std::uint64_t i = 1; i <= n; ++i) {
      if (i > 1) caller.rounds(50);
      step_clock("trouble_monotonic_step_ns", static_cast<std::int64_t>(i) * 11'000'000'000);
      wait_for_snapshot(i);
    }
  }
  if (where == "closed") {
    // Closes all descriptors, as a process that becomes a daemon in place does. The next file gets
    // the number of one of ours.
    for (int fd = 3; fd < 1024; ++fd) close(fd);
    for (int fd = 3; fd < 100; ++fd) {
      if (open("own-file", O_RDWR | O_CREAT, 0666) < 0) fail("open");
    }
    caller.rounds(50);
    const pid_t child = fork();
    if (child == 0) {
      for (int fd = 3; fd < 100; ++fd) {
        if (fcntl(fd, F_GETFD) < 0) _exit(1);  // the child closed what is no longer ours
      }
      _exit(0);
    }
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0) fail("a descriptor of the child");
  }
  if (where == "vfork") {
    child_in_our_memory();
    caller.rounds(50);
  }
  if (where == "late") {
    g_static.caller = &caller;
    std::atexit(call_at_exit);
  }
  if (where == "group") caller.open_group();
  if (where == "large group") {
    for (int i = 0; i < 25; ++i) caller.open_group();
  }
  if (where == "call") caller.reduce();  // the library's gate keeps it inside
  if (how == "stop") {
    raise(SIGSTOP);
    caller.rounds(50);
  }
  if (how == "wait" || how == "stubborn") {
    std::puts("ready");
    std::fflush(stdout);
    for (;;) pause();
  }
  if (how == "return" || how == "stop") return 6;
  if (how == "pthread_exit") {
    std::thread([] {
      Caller last(new_communicator(), 4);
      last.rounds(50);
      std::exit(3);
    }).detach();
    pthread_exit(nullptr);
  }
  leave_by(how);
}

}  // namespace fault
