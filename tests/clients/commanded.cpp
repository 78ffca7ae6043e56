// Obeys commands on standard input, one per line, and answers each with "done":
//
//   gather N     makes N all-gathers
//   step N       makes N pairs of an all-gather and a reduce-scatter
//   held N       the same, but the device begins with none of them before the next reset is over
//   reset        calls tprof_reset
//   totals       prints tprof_totals first
//   race N       another thread makes N all-gathers while this one calls tprof_totals_and_reset,
//                and once more at the end; prints how many all-gathers these calls counted
//   hold N       takes N MiB of memory, which the kernel has to give back at the end
//   leave        ends its main thread, while another makes all-gathers until it is killed
//
// It is one rank, on a communicator of its own.
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "../../interpose/user/tprof.h"
#include "check.h"

namespace {

constexpr std::size_t kCount = 1024;

// Returns the number of all-gathers in the epoch that ends here.
long counted() {
  char json[4096];
  MUST(tprof_totals_and_reset(nullptr, 0) > 1);  // asks for the size
  MUST(tprof_totals_and_reset(json, sizeof json) <= sizeof json);
  const std::string text(json);
  const std::string key = "\"ALLGATHER\":{\"calls\":";
  const std::size_t at = text.find(key);
  return at == std::string::npos ? 0 : std::stol(text.substr(at + key.size()));
}

void waits_until(void* over) {
  static_cast<std::atomic<bool>*>(over)->wait(false);
}

}  // namespace

int main() {
  ncclComm_t comm = nullptr;
  OK(ncclCommInitAll(&comm, 1, nullptr));
  void* from = nullptr;
  void* to = nullptr;
  OK(cudaMalloc(&from, kCount * sizeof(float)));
  OK(cudaMalloc(&to, kCount * sizeof(float)));
  std::vector<char> held;
  std::atomic<bool> begins{true};
  std::string command;
  while (std::cin >> command) {
    long n = 0;
    if (command == "gather" || command == "step" || command == "race" || command == "hold" ||
        command == "held") {
      std::cin >> n;
    }
    if (command == "hold") {
      held.resize(static_cast<std::size_t>(n) << 20, 1);
      n = 0;
    }
    if (command == "leave") {
      std::thread([&] {
        for (;; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
          OK(ncclAllGather(from, to, kCount, ncclFloat, comm, nullptr));
        }
      }).detach();
      std::printf("done\n");
      std::fflush(stdout);
      pthread_exit(nullptr);
    }
    if (command == "race") {
      std::atomic<bool> over{false};
      std::thread other([&, n] {
        for (long i = 0; i < n; ++i) {
          OK(ncclAllGather(from, to, kCount, ncclFloat, comm, nullptr));
        }
        over = true;
      });
      long sum = 0;
      while (!over) sum += counted();
      other.join();
      std::printf("%ld\n", sum + counted());
      n = 0;
    }
    if (command == "held") {
      begins = false;
      OK(cudaLaunchHostFunc(nullptr, waits_until, &begins));
    }
    for (long i = 0; i < n; ++i) {
      OK(ncclAllGather(from, to, kCount, ncclFloat, comm, nullptr));
      if (command == "gather") continue;
      OK(ncclReduceScatter(from, to, kCount, ncclFloat, ncclSum, comm, nullptr));
    }
    if (command == "reset") {
      MUST(tprof_reset() == TPROF_OK);
      begins = true;
      begins.notify_one();
    }
    if (command != "held") OK(cudaStreamSynchronize(nullptr));
    if (command == "totals") {
      std::vector<char> json(tprof_totals(nullptr, 0) + 4096);
      tprof_totals(json.data(), json.size());
      std::printf("%s\n", json.data());
    }
    std::printf("done\n");
    std::fflush(stdout);
  }
  OK(ncclCommDestroy(comm));
  return 0;
}
