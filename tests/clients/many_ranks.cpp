// Runs several ranks in one process, as nccl-tests does: with a group member for each device, with
// a thread for every few devices, or by ncclCommInitAll.
//
//   many_ranks [--threads T] [--devices G] [--all 1] [--steps N] [--odd RANK]
//
// A process holds T x G ranks. PROCESS and PROCESSES say which of how many processes it is.
// MANY_RANKS_ID names the file through which the first process tells the others the NCCL id. In a
// step every rank makes an all-gather of 64 float32, a reduce-scatter of 32, and an all-reduce of
// 16 on a communicator that is split off by parity. It also makes (rank + 1) copies of
// 256 (rank + 1) bytes to its device. --odd: in its third step this rank reduces to the maximum
// where the others add.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

struct Options {
  int threads = 1;
  int devices = 1;
  int all = 0;
  int steps = 5;
  int odd = -1;
};

#define CHECK(call)                                                    \
  do {                                                                 \
    if (const auto code = (call); static_cast<int>(code) != 0) {       \
      std::fprintf(stderr, "%s: %d\n", #call, static_cast<int>(code)); \
      std::_Exit(1);                                                   \
    }                                                                  \
  } while (false)

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    int& target = name == "--threads"   ? o.threads
                  : name == "--devices" ? o.devices
                  : name == "--all"     ? o.all
                  : name == "--steps"   ? o.steps
                                        : o.odd;
    target = std::atoi(argv[i + 1]);
  }
  return o;
}

int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

ncclUniqueId agree_on_id(int process) {
  ncclUniqueId id;
  const char* path = std::getenv("MANY_RANKS_ID");
  if (process == 0) {
    CHECK(ncclGetUniqueId(&id));
    if (path == nullptr) return id;
    const std::string whole_or_absent = std::string(path) + ".new";
    std::ofstream(whole_or_absent, std::ios::binary).write(id.internal, sizeof id.internal);
    std::filesystem::rename(whole_or_absent, path);
    return id;
  }
  for (;;) {
    std::ifstream file(path, std::ios::binary);
    if (file.read(id.internal, sizeof id.internal)) return id;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

struct Rank {
  int rank = 0;
  int device = 0;
  ncclComm_t world = nullptr;
  ncclComm_t half = nullptr;
  cudaStream_t stream = nullptr;
  float* data = nullptr;
};

// Does one thread's part for all of its ranks.
void train(std::vector<Rank>& ranks, const Options& o) {
  std::vector<char> host(std::size_t{256} * 64);
  CHECK(ncclGroupStart());
  for (Rank& r : ranks) {
    CHECK(cudaSetDevice(r.device));
    CHECK(ncclCommSplit(r.world, r.rank % 2, r.rank, &r.half, nullptr));
  }
  CHECK(ncclGroupEnd());
  for (Rank& r : ranks) {
    CHECK(cudaSetDevice(r.device));
    CHECK(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
    void* memory = nullptr;
    CHECK(cudaMalloc(&memory, std::size_t{1} << 20));
    r.data = static_cast<float*>(memory);
  }
  for (int step = 1; step <= o.steps; ++step) {
    for (const Rank& r : ranks) {
      CHECK(cudaSetDevice(r.device));
      const std::size_t bytes = std::size_t{256} * static_cast<std::size_t>(r.rank + 1);
      for (int i = 0; i <= r.rank; ++i) {
        CHECK(cudaMemcpyAsync(r.data, host.data(), bytes, cudaMemcpyHostToDevice, r.stream));
      }
    }
    CHECK(ncclGroupStart());
    for (const Rank& r : ranks) {
      CHECK(ncclAllGather(r.data, r.data + 4096, 64, ncclFloat, r.world, r.stream));
    }
    CHECK(ncclGroupEnd());
    CHECK(ncclGroupStart());
    for (const Rank& r : ranks) {
      const bool odd = r.rank == o.odd && step == 3;
      CHECK(ncclReduceScatter(r.data, r.data + 8192, 32, ncclFloat, odd ? ncclMax : ncclSum,
                              r.world, r.stream));
    }
    CHECK(ncclGroupEnd());
    CHECK(ncclGroupStart());
    for (const Rank& r : ranks) {
      CHECK(ncclAllReduce(r.data, r.data + 4096, 16, ncclFloat, ncclSum, r.half, r.stream));
    }
    CHECK(ncclGroupEnd());
  }
  for (const Rank& r : ranks) {
    CHECK(cudaSetDevice(r.device));
    CHECK(cudaStreamSynchronize(r.stream));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Options o = parse(argc, argv);
  const int process = number_from("PROCESS", 0);
  const int held = o.threads * o.devices;
  const int total = held * number_from("PROCESSES", 1);
  std::vector<std::vector<Rank>> threads(static_cast<std::size_t>(o.threads));
  for (int i = 0; i < held; ++i) {
    Rank& r = threads[static_cast<std::size_t>(i / o.devices)].emplace_back();
    r.rank = process * held + i;
    r.device = r.rank % 8;
  }
  if (o.all != 0) {
    std::vector<ncclComm_t> comms(static_cast<std::size_t>(held));
    CHECK(ncclCommInitAll(comms.data(), held, nullptr));
    for (int i = 0; i < held; ++i) {
      threads[static_cast<std::size_t>(i / o.devices)][static_cast<std::size_t>(i % o.devices)]
          .world = comms[static_cast<std::size_t>(i)];
    }
  }
  const ncclUniqueId id = o.all != 0 ? ncclUniqueId{} : agree_on_id(process);
  std::vector<std::thread> running;
  running.reserve(threads.size());
  for (std::vector<Rank>& ranks : threads) {
    running.emplace_back([&ranks, &o, &id, total] {
      if (o.all == 0) {
        CHECK(ncclGroupStart());
        for (Rank& r : ranks) {
          CHECK(cudaSetDevice(r.device));
          CHECK(ncclCommInitRank(&r.world, total, id, r.rank));
        }
        CHECK(ncclGroupEnd());
      }
      train(ranks, o);
    });
  }
  for (std::thread& t : running) t.join();
}
