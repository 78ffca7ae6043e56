// Makes collectives, groups and copies that are to be traced while the process is killed, starved
// of resources, forked or left by its threads.
//
//   fault_client [LIMIT...] MODE
//   LIMIT: --fsize BYTES   no file may grow larger        --as BYTES   of new address space
//          --fds N         only N more files can be opened
//   MODE:  storm PAUSE_US        four threads call until the process is killed, with a pause after
//                                every 50 rounds; says "ready"
//          calls ROUNDS THREADS  then says how many calls returned and exits with 7; all threads
//                                live at the same time
//          leave                 exits with 3 while four threads go on calling
//          fork | exec           a child calls too, after fork, or after fork and exec
//          threads N             N threads one after the other, three rounds each
//          room BYTES            takes that much memory between its calls
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <nccl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <latch>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "counts.h"

namespace {

using fault::Call;

constexpr std::size_t kAmount[] = {
#define X(name, function, dtype, amount) amount,
    FAULT_CALLS(X)
#undef X
};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "fault_client: %s failed\n", what);
  std::_Exit(99);
}

constexpr std::size_t kBytes = 16384;  // the largest message
char* device_buffer() {
  void* memory = nullptr;
  if (cudaMalloc(&memory, kBytes) != cudaSuccess) fail("cudaMalloc");
  return static_cast<char*>(memory);
}

ncclComm_t new_communicator() {
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  if (ncclGetUniqueId(&id) != ncclSuccess || ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess) {
    fail("ncclCommInitRank");
  }
  return comm;
}

// One thread's part: its communicator, its memory, its counts.
class Caller {
 public:
  // The same seed makes the same calls.
  Caller(ncclComm_t comm, std::uint64_t seed)
      : comm_(comm),
        from_(device_buffer()),
        to_(device_buffer()),
        counts_(fault::thread_counts()),
        random_(seed) {}

  void round(unsigned kind) {
    switch (kind % 9) {
      case 0:
        return one(fault::all_gather, [&](std::size_t n) {
          return ncclAllGather(from_, to_, n, ncclFloat32, comm_, nullptr);
        });
      case 1:
        return one(fault::reduce_scatter, [&](std::size_t n) {
          return ncclReduceScatter(from_, to_, n, ncclBfloat16, ncclSum, comm_, nullptr);
        });
      case 2:
        return one(fault::all_reduce, [&](std::size_t n) {
          return ncclAllReduce(from_, to_, n, ncclInt64, ncclMax, comm_, nullptr);
        });
      case 3:
        one(fault::broadcast, [&](std::size_t n) {
          return ncclBroadcast(from_, to_, n, ncclUint8, 0, comm_, nullptr);
        });
        return one(fault::refused, [&](std::size_t n) {
          return ncclBroadcast(from_, to_, n, ncclInt8, 5, comm_, nullptr);
        });
      case 4:
        return group();
      case 5:
        return lost_group();
      case 6:
        return one(fault::h2d, [&](std::size_t n) {
          return cudaMemcpyAsync(to_, host_, n, cudaMemcpyHostToDevice, nullptr);
        });
      case 7:
        return one(fault::d2h, [&](std::size_t n) {
          return cudaMemcpy(host_, from_, n, cudaMemcpyDeviceToHost);
        });
      default:
        return one(fault::d2d, [&](std::size_t n) {
          return cudaMemcpyAsync(to_, from_, n, cudaMemcpyDeviceToDevice, nullptr);
        });
    }
  }

  // Every kind once, then whatever comes: the order differs between threads.
  void rounds(std::uint64_t n) {
    for (; n != 0; --n, ++rounds_) {
      random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
      round(static_cast<unsigned>(rounds_ < 9 ? rounds_ : random_ >> 33));
    }
  }

  std::uint64_t returned() const {
    std::uint64_t sum = 0;
    for (const fault::Counts& c : counts_.call) sum += c.returned;
    return sum;
  }

 private:
  template <typename F>
  bool issue(Call call, F&& f) {
    counts_.call[call].entered.fetch_add(1);
    return static_cast<int>(f(kAmount[call])) == 0;
  }
  void ended(Call call, bool ok) {
    (ok ? counts_.call[call].returned : counts_.call[call].failed).fetch_add(1);
  }
  template <typename F>
  void one(Call call, F&& f) {
    ended(call, issue(call, f));
  }

  void group() {
    ncclGroupStart();
    issue(fault::grouped_gather,
          [&](std::size_t n) { return ncclAllGather(from_, to_, n, ncclInt32, comm_, nullptr); });
    ncclGroupStart();
    issue(fault::grouped_scatter, [&](std::size_t n) {
      return ncclReduceScatter(from_, to_, n, ncclFloat64, ncclSum, comm_, nullptr);
    });
    ncclGroupEnd();
    issue(fault::grouped_send,
          [&](std::size_t n) { return ncclSend(from_, n, ncclUint8, 0, comm_, nullptr); });
    issue(fault::grouped_recv,
          [&](std::size_t n) { return ncclRecv(to_, n, ncclUint8, 0, comm_, nullptr); });
    const bool ok = ncclGroupEnd() == ncclSuccess;
    for (const Call call : {fault::grouped_gather, fault::grouped_scatter, fault::grouped_send,
                            fault::grouped_recv}) {
      ended(call, ok);
    }
  }

  // A group with a refused call: none of it is executed.
  void lost_group() {
    ncclGroupStart();
    issue(fault::lost_reduce, [&](std::size_t n) {
      return ncclAllReduce(from_, to_, n, ncclUint32, ncclSum, comm_, nullptr);
    });
    issue(fault::lost_broadcast, [&](std::size_t n) {
      return ncclBroadcast(from_, to_, n, ncclUint64, 5, comm_, nullptr);
    });
    const bool ok = ncclGroupEnd() == ncclSuccess;
    ended(fault::lost_reduce, ok);
    ended(fault::lost_broadcast, ok);
  }

  ncclComm_t comm_;
  char* from_;
  char* to_;
  char host_[kBytes] = {};
  fault::ThreadCounts& counts_;
  std::uint64_t rounds_ = 0;
  std::uint64_t random_;
};

constexpr int kThreads = 4;

// Made by one thread before the others begin, so that their numbers are known.
std::vector<ncclComm_t> communicators(int n) {
  std::vector<ncclComm_t> made;
  made.reserve(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) made.push_back(new_communicator());
  return made;
}

// Four threads that call for ever; returns when each has made every kind of call.
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

int leave() {
  begin_storm(0);
  std::puts("leaving");
  return 3;
}

int wait_for(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) fail("waitpid");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int with_child(bool exec) {
  Caller parent(new_communicator(), 1);
  parent.rounds(100);
  const pid_t child = fork();
  if (child == 0) {
    if (exec) {
      execl("/proc/self/exe", "fault_client", "calls", "50", "1", nullptr);
      _exit(127);
    }
    Caller caller(new_communicator(), 2);
    caller.rounds(50);
    std::exit(5);
  }
  parent.rounds(100);
  std::printf("child exited with %d\n", wait_for(child));
  return 0;
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

void set_limit(decltype(RLIMIT_AS) which, rlim_t value) {
  const rlimit limit{value, value};
  if (setrlimit(which, &limit) != 0) fail("setrlimit");
}

rlim_t address_space_in_use() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

void apply(std::string_view limit, rlim_t value) {
  if (limit == "--fsize") return set_limit(RLIMIT_FSIZE, value);
  if (limit == "--as") return set_limit(RLIMIT_AS, address_space_in_use() + value);
  if (limit != "--fds") fail("reading the arguments");
  set_limit(RLIMIT_NOFILE, 64);
  int last = 0;
  while (last >= 0) last = open("/dev/null", O_RDONLY);
  for (rlim_t i = 0; i < value; ++i) close(63 - static_cast<int>(i));
}

}  // namespace

int main(int argc, char** argv) {
  fault::open_counts();
  int at = 1;
  for (; at + 1 < argc && std::strncmp(argv[at], "--", 2) == 0; at += 2) {
    apply(argv[at], std::strtoull(argv[at + 1], nullptr, 10));
  }
  const std::string_view mode = at < argc ? argv[at] : "";
  const auto number = [&](int i) {
    return at + i < argc ? std::strtoull(argv[at + i], nullptr, 10) : 0;
  };
  if (mode == "storm") return storm(static_cast<useconds_t>(number(1)));
  if (mode == "calls") return calls(number(1), static_cast<int>(number(2)));
  if (mode == "leave") return leave();
  if (mode == "fork" || mode == "exec") return with_child(mode == "exec");
  if (mode == "threads") return short_threads(static_cast<int>(number(1)));
  if (mode == "room") return room(number(1));
  fail("reading the arguments");
}
