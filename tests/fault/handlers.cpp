// Makes calls from a signal handler, after every single instruction of a program and of what it
// calls. The parent sends the signal there; where signals are blocked, it comes when they are let
// through. Prints what was called:
//
//   gathers, copies: made by the handler
//   outside: of the copies, those that interrupted the program's own code
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" const char __executable_start[];
extern "C" const char etext[];

namespace {

// The child's counts, which the parent sees.
struct Shared {
  std::atomic<unsigned long> gathers, copies, outside;
};
Shared* g_shared;

ncclComm_t g_comm;
char g_data[64];
volatile bool g_in_group;

void handler(int /*signal*/, siginfo_t* /*info*/, void* context) {
  const auto at =
      static_cast<unsigned long>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
  const auto begin = reinterpret_cast<unsigned long>(__executable_start);
  if (at >= begin && at < reinterpret_cast<unsigned long>(etext)) ++g_shared->outside;
  // In a group the gathers wait for its end, which goes through all of them.
  if (!g_in_group || g_shared->copies % 16 == 0) {
    ++g_shared->gathers;
    ncclAllGather(g_data, g_data, 3, ncclInt8, g_comm, nullptr);
  }
  ++g_shared->copies;
  cudaMemcpyAsync(g_data, g_data, 5, cudaMemcpyHostToDevice, nullptr);
  asm volatile("int3");
}

void program() {
  ncclAllReduce(g_data, g_data, 16, ncclInt8, ncclSum, g_comm, nullptr);
  cudaMemcpyAsync(g_data, g_data, 32, cudaMemcpyHostToDevice, nullptr);
  cudaMemcpy(g_data, g_data, 33, cudaMemcpyDeviceToHost);
  ncclBroadcast(g_data, g_data, 16, ncclInt8, 1, g_comm, nullptr);  // refused
  g_in_group = true;
  ncclGroupStart();
  ncclSend(g_data, 17, ncclInt8, 0, g_comm, nullptr);
  ncclRecv(g_data, 17, ncclInt8, 0, g_comm, nullptr);
  ncclGroupEnd();
  g_in_group = false;
  ncclUniqueId id;
  ncclComm_t own = nullptr;
  ncclGetUniqueId(&id);
  ncclCommInitRank(&own, 1, id, 0);
  ncclReduceScatter(g_data, g_data, 18, ncclInt8, ncclSum, own, nullptr);
  ncclCommDestroy(own);
  void* pinned = nullptr;
  cudaHostAlloc(&pinned, 64, 0);
  ncclAllReduce(g_data, g_data, 16, ncclInt8, ncclSum, g_comm, nullptr);
}

[[noreturn]] void child() {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGUSR1, &action, nullptr);
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  ncclCommInitRank(&g_comm, 1, id, 0);
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(77);
  raise(SIGSTOP);
  program();
  std::signal(SIGUSR1, SIG_IGN);
  raise(SIGSTOP);
  std::exit(0);
}

bool stopped_by(int status, int signal) {
  return WIFSTOPPED(status) && WSTOPSIG(status) == signal;
}

int go_on(pid_t pid, __ptrace_request how, long signal) {
  int status = 0;
  if (ptrace(how, pid, nullptr, signal) != 0 || waitpid(pid, &status, 0) != pid) return -1;
  return status;
}

unsigned long place(pid_t pid) {
  user_regs_struct registers{};
  ptrace(PTRACE_GETREGS, pid, nullptr, &registers);
  return registers.rip;
}

}  // namespace

int main() {
  g_shared = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t pid = fork();
  if (pid == 0) child();
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    std::puts("this system forbids ptrace");
    return 77;
  }
  bool well = stopped_by(status, SIGSTOP);
  // The kernel's clock code begins again when its time has changed meanwhile. Handlers in there
  // take so long that it would do so again and again.
  const unsigned long clock = getauxval(AT_SYSINFO_EHDR);
  constexpr unsigned long kClockBytes = 8192;
  while (well) {
    if (place(pid) - clock < kClockBytes) {
      well = stopped_by(status = go_on(pid, PTRACE_SINGLESTEP, 0), SIGTRAP);
      continue;
    }
    // Runs to the handler's end. A signal that is blocked comes later, and stops the child then.
    do {
      status = go_on(pid, PTRACE_CONT, SIGUSR1);
    } while (stopped_by(status, SIGUSR1));
    if (stopped_by(status, SIGSTOP)) break;  // this is the program's own stop
    // Steps into and out of sigreturn, and one instruction on.
    for (const auto how : {PTRACE_SYSCALL, PTRACE_SYSCALL, PTRACE_SINGLESTEP}) {
      well = well && stopped_by(status, SIGTRAP);
      if (well) status = go_on(pid, how, 0);
    }
    if (stopped_by(status, SIGSTOP)) break;
    well = well && stopped_by(status, SIGTRAP);
  }
  if (!well) {
    std::fprintf(stderr, "handlers: ended with %#x after %lu handlers\n",
                 static_cast<unsigned>(status), g_shared->copies.load());
    return 1;
  }
  ptrace(PTRACE_DETACH, pid, nullptr, 0);
  waitpid(pid, &status, 0);
  std::printf("gathers %lu\ncopies %lu\noutside %lu\n", g_shared->gathers.load(),
              g_shared->copies.load(), g_shared->outside.load());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
