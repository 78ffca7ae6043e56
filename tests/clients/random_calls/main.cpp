// Makes thousands of calls that a seed chooses: whatever a valid program might do, in any order.
// The libraries under it report what was called (tests/lib/tally.py).
//
//   random_calls [--seed N] [--turns N] [--threads N] [--held N] [--processes N --process I
//                --ids FOLDER] [--copiers N] [--refused 0|1] [--by-pointer 0|1] [--driver 0|1]
//                [--odd RANK --odd-turn N] [--kill TURN] [--tell 0|1]
//                [--fork-first 0|1]
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdarg>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <thread>

#include "player.h"

namespace {

bool g_by_pointer = false;

Options parse(int argc, char** argv) {
  Options o;
  const struct {
    std::string_view name;
    int* target;
  } numbers[] = {{"--turns", &o.turns},       {"--threads", &o.threads},
                 {"--held", &o.held},         {"--processes", &o.processes},
                 {"--process", &o.process},   {"--copiers", &o.copiers},
                 {"--refused", &o.refused},   {"--by-pointer", &o.by_pointer},
                 {"--driver", &o.driver},     {"--odd", &o.odd},
                 {"--odd-turn", &o.odd_turn}, {"--kill", &o.kill},
                 {"--tell", &o.tell},         {"--fork-first", &o.fork_first}};
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    bool known = name == "--seed" || name == "--ids";
    if (name == "--seed") o.seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--ids") o.ids = argv[i + 1];
    for (const auto& number : numbers) {
      if (name != number.name) continue;
      *number.target = std::atoi(argv[i + 1]);
      known = true;
    }
    MUST(known);
  }
  return o;
}

char* device_memory(std::size_t size) {
  void* memory = nullptr;
  OK(cudaMalloc(&memory, size));
  return static_cast<char*>(memory);
}

Rank make_rank(int number) {
  Rank r;
  r.rank = r.device = number;
  OK(CALL(cudaSetDevice)(r.device));
  OK(CALL(cudaStreamCreateWithFlags)(&r.streams[0], cudaStreamNonBlocking));
  OK(CALL(cudaStreamCreateWithFlags)(&r.streams[1], cudaStreamNonBlocking));
  OK(CALL(cudaStreamCreateWithFlags)(&r.streams[2], cudaStreamDefault));
  OK(cudaEventCreateWithFlags(&r.forked, cudaEventDisableTiming));
  OK(cudaEventCreateWithFlags(&r.joined, cudaEventDisableTiming));
  r.memory = device_memory(2 * kRegion);
  void* memory = nullptr;
  OK(cudaHostAlloc(&memory, 2 * kRegion, cudaHostAllocDefault));
  r.pinned = static_cast<char*>(memory);
  OK(cudaMallocManaged(&memory, 2 * kRegion, cudaMemAttachGlobal));
  r.managed = static_cast<char*>(memory);
  r.pageable = new char[2 * kRegion]();
  return r;
}

// Forks a child that does nothing, as a program does when it runs a shell command.
void fork_a_little() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 0;
  MUST(waitpid(child, &status, 0) == child && status == 0);
}

void one_turn(Player& p) {
  const std::size_t what = p.common.below(100);
  if (p.own.chance(1)) fork_a_little();
  if (what < 40) {
    nccl_turn(p);
  } else if (what < 46) {
    life_turn(p);
  } else if (what < 75) {
    graph_turn(p);
  } else {
    copy_turn(p, p.own, p.ranks[p.own.below(p.ranks.size())]);
  }
}

void play(Player& p) {
  make_world(p);
  for (p.turn = 0; p.turn < p.o.turns; ++p.turn) {
    if (p.index == 0 && p.turn == p.o.kill) kill(getpid(), SIGKILL);
    if (!p.common.chance(6)) {
      one_turn(p);
      continue;
    }
    // Runs the turn on a thread of its own, whose default stream goes with it.
    std::thread([&p] {
      one_turn(p);
      synchronize(p);
    }).join();
  }
  synchronize(p);
}

void copy_only(Player& p) {
  for (p.turn = 0; p.turn < p.o.turns; ++p.turn) copy_turn(p, p.own, p.ranks[0]);
  synchronize(p);
}

}  // namespace

Player::Player(const Options& options, int number)
    : o(options),
      index(number),
      common(options.seed),
      own(options.seed * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(number) + 1) {}

void synchronize(const Player& p) {
  for (const Rank& r : p.ranks) {
    synchronize(r);
    OK(CALL(cudaSetDevice)(r.device));
    OK(CALL(cudaDeviceSynchronize)());
  }
}
void synchronize(const Rank& r) {
  for (cudaStream_t stream : r.streams) OK(cudaStreamSynchronize(stream));
  for (int device = 0; device < kOtherDevices; ++device) {
    OK(CALL(cudaSetDevice)(device));
    OK(cudaStreamSynchronize(cudaStreamLegacy));
    OK(cudaStreamSynchronize(cudaStreamPerThread));
  }
  OK(CALL(cudaSetDevice)(r.device));
  OK(cudaStreamSynchronize(cudaStreamLegacy));
  OK(cudaStreamSynchronize(cudaStreamPerThread));
}

void tell(const Player& p, const char* format, ...) {
  if (p.o.tell == 0) return;
  char text[200];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "player %d, turn %d: %s\n", p.index, p.turn, text);
}

void* by_pointer(const char* name) {
  if (!g_by_pointer) return nullptr;
  static void* const libraries[] = {dlopen("libcudart.so.13", RTLD_NOW),
                                    dlopen("libnccl.so.2", RTLD_NOW)};
  thread_local Dice dice(42);
  if (dice.chance(50)) return nullptr;
  void* found = dlsym(libraries[std::strncmp(name, "nccl", 4) == 0 ? 1 : 0], name);
  MUST(found != nullptr);
  return found;
}

int main(int argc, char** argv) {
  Options o = parse(argc, argv);
  const pid_t child = o.fork_first == 0 ? -1 : fork();
  if (child == 0) {
    ++o.seed;
    o.ids += "/child";
    std::filesystem::create_directory(o.ids);
  }
  // Loads the driver as NVIDIA's runtime does at its first call.
  MUST(dlopen("libcuda.so.1", RTLD_NOW) != nullptr);
  g_by_pointer = o.by_pointer != 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < o.threads + o.copiers; ++t) {
    threads.emplace_back([&o, t] {
      const bool copier = t >= o.threads;
      Player p(o, copier ? o.players() + t : o.process * o.threads + t);
      for (int i = 0; i < (copier ? 1 : o.held); ++i) {
        p.ranks.push_back(make_rank(copier ? t % 8 : p.index * o.held + i));
      }
      copier ? copy_only(p) : play(p);
    });
    if (o.threads + o.copiers == 1) threads.back().join();
  }
  for (std::thread& t : threads) {
    if (t.joinable()) t.join();
  }
  int status = 0;
  if (child > 0) MUST(waitpid(child, &status, 0) == child && status == 0);
  return 0;
}
