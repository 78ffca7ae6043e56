// held_signals.h: a thread is not cancelled while it holds what others wait for.
#include "interpose/base/held_signals.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "catch2.h"

namespace {

constexpr int kSigcancel = 32;  // glibc's own
constexpr int kLived = 7;

// The first pthread_cancel of a process installs the handler of glibc's signal.
void install_handler() {
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        for (;;) pause();
      },
      nullptr);
  pthread_cancel(thread);
  pthread_join(thread, nullptr);
}

}  // namespace

TEST_CASE("a cancellation that was sent before the guard began does not end its thread inside") {
  const pid_t child = fork();
  if (child == 0) {
    install_handler();
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
    const tprof::HeldSignals held;
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), kSigcancel);
    _exit(kLived);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == kLived);
}
