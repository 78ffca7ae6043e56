// Runs all of libtprof.so but its wrappers in a process of many threads: rings, ledgers, tables,
// writer, session. Its exit status says whether every call was counted. It is to be run under
// ThreadSanitizer (scripts/sanitize), which can't watch a preloaded library.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "interpose/calls/copy_call.h"
#include "interpose/calls/nccl_call.h"
#include "interpose_world.h"

using namespace tprof;

// The thread that looks at dead rings has a descriptor table of its own (unshare(CLONE_FILES)).
// ThreadSanitizer knows one table, and takes the same number in both for the same file.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier): the sanitizer asks for it by this name
const char* __tsan_default_suppressions();
const char* __tsan_default_suppressions() {
  return "race:left_rings.cpp\n";
}
// NOLINTEND(bugprone-reserved-identifier)
}

namespace {

constexpr int kThreads = 4;
constexpr int kGenerations = 3;  // of threads, which take over the areas of those that ended
constexpr int kSteps = 400;

// The program's own counts.
struct Counts {
  std::atomic<std::uint64_t> all_reduces, all_gathers, sends, copies, failed;
};

ncclComm_t handle(std::uintptr_t number) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): never dereferenced
  return reinterpret_cast<ncclComm_t>(number * 64);
}

void make_communicator(ncclComm_t comm, int nranks) {
  comms::add(comm,
             comms::identified(mix64(reinterpret_cast<std::uintptr_t>(comm)), nullptr, nranks));
}

void train(std::uintptr_t number, ncclComm_t world, Counts& counts) {
  ncclComm_t own = handle(1000 + number);
  make_communicator(own, 2);
  std::vector<char> pinned(64);
  for (int step = 0; step < kSteps; ++step) {
    Thread* t = recording_thread();
    if (t == nullptr) return;  // then the counts will not fit
    const bool refused = step % 17 == 0;
    test::all_reduce(*t, world, 10, refused ? ncclInvalidArgument : ncclSuccess);
    ++(refused ? counts.failed : counts.all_reduces);
    test::all_gather(*t, own, 7);
    ++counts.all_gathers;
    test::copy_to_device(*t, 4096);
    ++counts.copies;
    if (step % 10 == 0) {
      group_started(*t);
      for (int i = 0; i < 3; ++i) test::send(*t, world, 5, i);
      group_ended(*t, now_ns(), 1, ncclSuccess, false);
      counts.sends += 3;
    }
    if (step % 50 == 0) {
      ncclComm_t brief = handle(100'000 + number * kSteps + static_cast<unsigned>(step));
      make_communicator(brief, 3);
      test::all_gather(*t, brief, 1);
      ++counts.all_gathers;
      comms::end(brief, nullptr);
      memory::add(pinned.data(), pinned.size(), HostMemory::pinned);
      memory::remove(pinned.data());
    }
  }
  comms::end(own, nullptr);
}

void run_generations(Counts& counts) {
  recording_thread();  // starts the session
  ncclComm_t world = handle(1);
  make_communicator(world, 8);
  std::atomic<bool> training{true};
  // Reads as the writer does for its ledger lines, but more often.
  std::thread reader([&] {
    Sums sums;
    while (training) {
      collect(session::mapping().view(), sums, true);
      std::this_thread::yield();
    }
  });
  for (std::uintptr_t generation = 0; generation < kGenerations; ++generation) {
    std::vector<std::thread> threads;
    for (std::uintptr_t i = 0; i < kThreads; ++i) {
      threads.emplace_back(train, generation * kThreads + i, world, std::ref(counts));
    }
    for (std::thread& thread : threads) thread.join();
  }
  training = false;
  reader.join();
}

bool ledger_has(const Counts& counts) {
  const View view = session::mapping().view();
  const LedgerValues reduces = test::total_of(view, Fn::ncclAllReduce);
  return reduces.calls == counts.all_reduces && reduces.failed == counts.failed &&
         test::total_of(view, Fn::ncclAllGather).calls == counts.all_gathers &&
         test::total_of(view, Fn::ncclSend).calls == counts.sends &&
         test::total_of(view, Fn::cudaMemcpyAsync).calls == counts.copies;
}

[[noreturn]] void traced_process(const std::filesystem::path& folder) {
  setenv("TPROF_OUTPUT_DIR", folder.c_str(), 1);
  setenv("TPROF_RING", "64", 1);  // full again and again
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "8", 1);
  static Counts counts{};
  run_generations(counts);
  if (!ledger_has(counts)) {
    std::fprintf(stderr, "the ledger does not hold what the program counted\n");
    _exit(1);
  }
  // exit() does not stop threads: one goes on calling while the file is closed.
  std::thread([] {
    for (;;) {
      if (Thread* t = recording_thread()) test::copy_to_device(*t, 1);
    }
  }).detach();
  std::exit(0);
}

}  // namespace

int main() {
  std::string name = (std::filesystem::temp_directory_path() / "tprof-threads-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) return 1;
  const pid_t child = fork();
  if (child == 0) traced_process(name);
  int status = 0;
  waitpid(child, &status, 0);
  std::ifstream in(name + "/rank-00000.json");
  const std::string trace((std::istreambuf_iterator<char>(in)), {});
  std::filesystem::remove_all(name);
  if (status != 0) {
    std::fprintf(stderr, "the traced process ended with wait status %d\n", status);
    return 1;
  }
  if (!trace.ends_with("\"complete\":true}}\n]\n")) {
    std::fprintf(stderr, "the rank file is not closed\n");
    return 1;
  }
  return 0;
}
