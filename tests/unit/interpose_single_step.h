// Looks at a program after every single instruction, where a SIGKILL could have hit it.
#pragma once

#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

#include "catch2.h"
#include "interpose_world.h"

namespace tprof::test {

// Runs `program(counts)` in a child, and calls `look(view, counts)` here after each of its
// instructions and at its end. The view is the parent's own of `file`, in which the world lies, so
// it also has what the child adds to its mapping. Returns the number of instructions, or 0 where
// the system forbids ptrace.
template <typename Counts, typename Program, typename Look>
std::uint64_t at_every_instruction(int file, Program&& program, Look&& look) {
  auto* counts = static_cast<Counts*>(
      mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const std::uint64_t size = World::mapping().head().used;
  void* seen = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
  const View view(seen, size);
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(77);
    raise(SIGSTOP);
    program(*counts);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::uint64_t steps = 0;
  if (WIFEXITED(status)) {
    WARN("left out: this system forbids ptrace");
  } else {
    for (; WIFSTOPPED(status); ++steps) {
      look(view, *counts);
      if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0) break;
      waitpid(child, &status, 0);
    }
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    look(view, *counts);
  }
  munmap(seen, size);
  munmap(counts, sizeof(Counts));
  return steps;
}

}  // namespace tprof::test
