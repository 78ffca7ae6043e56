// Makes a child of a traced process in each possible way.
#include <sched.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "caller.h"
#include "modes.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace fault {
namespace {

constexpr char kSelf[] = "/proc/self/exe";
char* const kCalls[] = {const_cast<char*>("fault_client"), const_cast<char*>("calls"),
                        const_cast<char*>("50"), const_cast<char*>("1"), nullptr};

// Forks without the handlers of pthread_atfork, as Go, some sandboxes and checkpointers do.
pid_t bare_fork() {
  return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

[[noreturn]] void calls_and_exit() {
  Caller caller(new_communicator(), 2);
  caller.rounds(50);
  std::exit(5);
}

ncclComm_t g_parents[2];

pid_t start(std::string_view how) {
  pid_t child = -1;
  if (how == "spawn") {
    return posix_spawn(&child, kSelf, nullptr, nullptr, kCalls, environ) == 0 ? child : -1;
  }
  if (how == "vfork") {
    // NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): what is to be tried
    child = vfork();
    if (child == 0) {
      execv(kSelf, kCalls);
      _exit(127);
    }
    return child;
  }
  child = how.starts_with("bare") ? bare_fork() : fork();
  if (child != 0) return child;
  if (how == "exec") {
    execv(kSelf, kCalls);
    _exit(127);
  }
  if (how == "bare-silent") std::exit(5);  // runs exit handlers, ours too
  if (how == "destroys") {
    // Does what PyTorch's exit handlers do with what they inherited from the parent.
    ncclGroupStart();
    ncclCommAbort(g_parents[0]);
    ncclGroupEnd();
    ncclCommDestroy(g_parents[1]);
    std::exit(5);
  }
  if (how == "_exit") {
    Caller caller(new_communicator(), 2);
    caller.rounds(50);
    _exit(5);
  }
  if (how == "grandchild") {
    const pid_t grandchild = fork();
    if (grandchild == 0) calls_and_exit();
    if (waitpid(grandchild, nullptr, 0) != grandchild) fail("waitpid");
  }
  calls_and_exit();
}

int wait_for(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) fail("waitpid");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Goes on in a child while the parent leaves by _exit, as a server does, without our notice.
int as_daemon() {
  Caller before(new_communicator(), 1);
  before.rounds(100);
  if (daemon(1, 1) != 0) fail("daemon");
  Caller after(new_communicator(), 2);
  after.rounds(50);
  std::puts("the daemon is done");
  return 0;
}

}  // namespace

int with_child(std::string_view how) {
  if (how == "daemon") return as_daemon();
  for (ncclComm_t& comm : g_parents) comm = new_communicator();
  Caller parent(g_parents[0], 1);
  parent.rounds(100);
  const pid_t child = start(how);
  if (child < 0) fail("making a child");
  parent.rounds(100);
  std::printf("child exited with %d\n", wait_for(child));
  return 0;
}

}  // namespace fault
