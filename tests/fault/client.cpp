// Makes collectives, groups and copies that are to be traced while the process is killed, starved
// of resources, forked or left by its threads.
//
//   fault_client [LIMIT...] MODE
//   LIMIT: --fsize BYTES   no file may grow larger
//          --as BYTES      only so much new address space
//          --fds N         only N more files can be opened
//          --refuse CALL   the system call of this number fails with EPERM
//   MODE:  storm PAUSE_US        four threads call until the process is killed, with a pause after
//                                every 50 rounds; prints "ready"
//          calls ROUNDS THREADS  all threads live at the same time; then it prints how many calls
//                                returned, and exits with 7
//          late ROUNDS COMMS [stay]  calls, makes that many communicators with a call on each, and
//                                calls as often again on the last; exits with 7, or stays
//          leave HOW             exits with 3, by return or _exit, while four threads go on calling
//          child HOW             a child calls too: see children.cpp
//          end HOW [WHERE]       calls, then an end: see ends.cpp
//          threads N             N threads one after the other, three rounds each
//          small N               N threads with the smallest stacks, the first call in one of them
//          too room BYTES            takes that much memory between its calls keys COMMS calls of
//          which no two are alike: see keys.cpp starve WHAT WHEN HOW  can map, open or start no
//          more from a moment on: see starved.cpp
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <latch>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "caller.h"
#include "modes.h"

namespace {

using fault::Caller;
using fault::fail;
using fault::new_communicator;
using fault::refuse;
using fault::set_limit;

constexpr int kThreads = 4;

// Makes the communicators on one thread before the others begin, so that their numbers are known.
std::vector<ncclComm_t> communicators(int n) {
  std::vector<ncclComm_t> made;
  made.reserve(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) made.push_back(new_communicator());
  return made;
}

// Starts four threads that call for ever; returns when each has made every kind of call.
void begin_storm(useconds_t pause_us) {
  static std::latch ready(kThreads);
  std::uint64_t seed = 0;
  for (ncclComm_t comm : communicators(kThreads)) {
    std::thread([comm, seed = ++seed, pause_us] {
      Caller caller(comm, seed);
      caller.rounds(9);
      ready.count_down();
      for (;;) {
        caller.rounds(50);
        if (pause_us != 0) usleep(pause_us);
      }
    }).detach();
  }
  ready.wait();
}

int storm(useconds_t pause_us) {
  begin_storm(pause_us);
  std::puts("ready");
  std::fflush(stdout);
  for (;;) pause();
}

int calls(std::uint64_t rounds, int threads) {
  std::vector<std::thread> running;
  std::atomic<std::uint64_t> returned{0};
  std::latch all_here(threads);
  std::uint64_t seed = 0;
  for (ncclComm_t comm : communicators(threads)) {
    running.emplace_back([&, comm, seed = ++seed] {
      Caller caller(comm, seed);
      caller.rounds(1);
      all_here.arrive_and_wait();
      caller.rounds(rounds - 1);
      returned += caller.returned();
    });
  }
  for (std::thread& t : running) t.join();
  std::printf("%llu calls returned\n", static_cast<unsigned long long>(returned.load()));
  return 7;
}

int late(std::uint64_t rounds, int comms, bool stay) {
  Caller(new_communicator(), 1).rounds(rounds);
  std::vector<ncclComm_t> made = communicators(comms);
  for (ncclComm_t comm : made) Caller(comm, 1).rounds(1);
  Caller(made.back(), 1).rounds(rounds);
  while (stay) pause();
  return 7;
}

int leave(std::string_view how) {
  begin_storm(0);
  std::puts("leaving");
  std::fflush(stdout);
  if (how == "_exit") _exit(3);
  return 3;
}

int short_threads(int n) {
  ncclComm_t comm = new_communicator();
  for (int i = 0; i < n; ++i) {
    std::thread([comm] { Caller(comm, 1).rounds(3); }).join();
  }
  std::puts("all threads are gone");
  return 0;
}

int room(std::size_t bytes) {
  Caller caller(new_communicator(), 1);
  caller.rounds(20);
  const bool got = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED;
  caller.rounds(20);
  std::puts(got ? "there is room" : "out of memory");
  return 7;
}

void apply(std::string_view limit, rlim_t value) {
  if (limit == "--refuse") return refuse(static_cast<std::uint32_t>(value));
  if (limit == "--fsize") return set_limit(RLIMIT_FSIZE, value);
  if (limit == "--as") return set_limit(RLIMIT_AS, fault::address_space_in_use() + value);
  if (limit != "--fds") fail("reading the arguments");
  set_limit(RLIMIT_NOFILE, 64);
  int last = 0;
  while (last >= 0) last = open("/dev/null", O_RDONLY);
  for (rlim_t i = 0; i < value; ++i) close(63 - static_cast<int>(i));
}

}  // namespace

namespace fault {

void set_limit(__rlimit_resource_t which, rlim_t value) {
  const rlimit limit{value, value};
  if (setrlimit(which, &limit) != 0) fail("setrlimit");
}

rlim_t address_space_in_use() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

// Refuses a system call, as a container's profile does with calls that it does not know.
void refuse(std::uint32_t call) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    fail("seccomp");
  }
}

}  // namespace fault

int main(int argc, char** argv) {
  fault::open_counts();
  const char* folder = std::getenv("FAULT_CHDIR");  // as programs do before their first call
  if (folder != nullptr && chdir(folder) != 0) fail("chdir");
  int at = 1;
  for (; at + 1 < argc && std::strncmp(argv[at], "--", 2) == 0; at += 2) {
    apply(argv[at], std::strtoull(argv[at + 1], nullptr, 10));
  }
  const std::string_view mode = at < argc ? argv[at] : "";
  const auto argument = [&](int i) {
    return at + i < argc ? std::string_view(argv[at + i]) : std::string_view();
  };
  const auto number = [&](int i) {
    return argument(i).empty() ? 0 : std::strtoull(argument(i).data(), nullptr, 10);
  };
  if (mode == "storm") return storm(static_cast<useconds_t>(number(1)));
  if (mode == "calls") return calls(number(1), static_cast<int>(number(2)));
  if (mode == "late") return late(number(1), static_cast<int>(number(2)), argument(3) == "stay");
  if (mode == "leave") return leave(argument(1));
  if (mode == "child") return fault::with_child(argument(1));
  if (mode == "end") return fault::end(argument(1), argument(2));
  if (mode == "threads") return short_threads(static_cast<int>(number(1)));
  if (mode == "small") return fault::small_stacks(static_cast<int>(number(1)));
  if (mode == "room") return room(number(1));
  if (mode == "keys") return fault::keys(static_cast<int>(number(1)));
  if (mode == "starve") return fault::starved(argument(1), argument(2), argument(3));
  fail("reading the arguments");
}
