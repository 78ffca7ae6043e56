// A training loop that communicates like FSDP2, for machines that can't get PyTorch.
//
//   native_trainer [--ranks N] [--steps N] [--blocks N] [--width N]
//
// With NATIVE_TRAINER_ID this is one rank: that file is where rank 0 tells the others the NCCL id,
// and the launcher says which rank it is (torchrun, Open MPI, MPICH, Slurm). Otherwise it starts N
// ranks of itself and waits for them.
//
// One step goes in FSDP2's order. It copies the input to the device and all-gathers the root and
// every block. Backward gathers every block once more before it reduce-scatters the gradients of
// the block above. Then it reduce-scatters the root's gradients and copies the loss to the host.

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
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
  int ranks = 4;
  int steps = 10;
  int blocks = 4;
  int width = 256;
};

[[noreturn]] void fail(const char* what, const char* why) {
  std::fprintf(stderr, "native_trainer: %s: %s\n", what, why);
  std::exit(1);
}

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(what, cudaGetErrorString(error));
}

void check(ncclResult_t result, const char* what) {
  if (result != ncclSuccess) fail(what, ncclGetErrorString(result));
}

#define CHECK(call) check((call), #call)

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    int* target = name == "--ranks"    ? &options.ranks
                  : name == "--steps"  ? &options.steps
                  : name == "--blocks" ? &options.blocks
                  : name == "--width"  ? &options.width
                                       : nullptr;
    if (target == nullptr) fail(argv[i], "unknown option: --ranks, --steps, --blocks or --width");
    *target = i + 1 < argc ? std::atoi(argv[i + 1]) : 0;
    if (*target < 1) fail(argv[i], "needs a number of at least 1");
  }
  return options;
}

// ---- Starting the ranks

int launch(int ranks, char** argv) {
  std::string folder = std::filesystem::temp_directory_path() / "native_trainer.XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) fail(folder.c_str(), std::strerror(errno));
  setenv("NATIVE_TRAINER_ID", (folder + "/id").c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(ranks).c_str(), 1);

  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child < 0) fail("fork", std::strerror(errno));
    if (child == 0) {
      setenv("RANK", std::to_string(rank).c_str(), 1);
      setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
      execv("/proc/self/exe", argv);
      _exit(127);
    }
    children.push_back(child);
  }

  int exit_code = 0;
  for (std::size_t left = children.size(); left > 0; --left) {
    int status = 0;
    const pid_t ended = wait(&status);
    std::erase(children, ended);
    if (status == 0 || exit_code != 0) continue;
    // The others would wait for this rank for ever.
    exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    for (const pid_t child : children) kill(child, SIGTERM);
  }
  std::filesystem::remove_all(folder);
  return exit_code;
}

// ---- One rank

struct Place {
  int rank, ranks, device;
};

int number_from(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) fail(variable, "is not set");
  return std::atoi(text);
}

Place place_of_launcher() {
  constexpr const char* kLaunchers[][3] = {
      {"RANK", "WORLD_SIZE", "LOCAL_RANK"},
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
      {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
  };
  for (const auto& [rank, ranks, device] : kLaunchers) {
    if (std::getenv(rank) != nullptr) {
      // `srun --mpi=pmi2` tells no local rank.
      const bool tells_device = std::getenv(device) != nullptr;
      return {number_from(rank), number_from(ranks), number_from(tells_device ? device : rank)};
    }
  }
  fail("NATIVE_TRAINER_ID", "is set, but no launcher says which rank this is");
}

ncclUniqueId agree_on_id(int rank) {
  const char* path = std::getenv("NATIVE_TRAINER_ID");
  ncclUniqueId id;
  if (rank == 0) {
    CHECK(ncclGetUniqueId(&id));
    const std::string whole_or_absent = std::string(path) + ".new";
    std::ofstream(whole_or_absent, std::ios::binary).write(id.internal, sizeof id.internal);
    std::filesystem::rename(whole_or_absent, path);
    return id;
  }
  for (int tries = 0; tries < 60'000; ++tries) {
    std::ifstream file(path, std::ios::binary);
    if (file.read(id.internal, sizeof id.internal)) return id;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  fail(path, "rank 0 has written no NCCL id in a minute");
}

float* device_floats(std::size_t count) {
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, count * sizeof(float)));
  return static_cast<float*>(memory);
}

// The parameters of one fully_shard group and their gradients: this rank's shard, and the whole.
struct Group {
  Group(std::size_t parameters, int ranks)
      : shard_count((parameters + ranks - 1) / ranks),
        shard(device_floats(shard_count)),
        whole(device_floats(shard_count * ranks)),
        gradient_shard(device_floats(shard_count)),
        gradient(device_floats(shard_count * ranks)) {}

  void gather(ncclComm_t comm, cudaStream_t stream) const {
    CHECK(ncclAllGather(shard, whole, shard_count, ncclFloat, comm, stream));
  }
  void scatter_gradient(ncclComm_t comm, cudaStream_t stream) const {
    CHECK(
        ncclReduceScatter(gradient, gradient_shard, shard_count, ncclFloat, ncclAvg, comm, stream));
  }

  std::size_t shard_count;
  float* shard;
  float* whole;
  float* gradient_shard;
  float* gradient;
};

void train(const Options& options) {
  const auto [rank, ranks, device] = place_of_launcher();
  CHECK(cudaSetDevice(device));
  const ncclUniqueId id = agree_on_id(rank);
  ncclComm_t comm = nullptr;
  CHECK(ncclCommInitRank(&comm, ranks, id, rank));
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  // A GPT's block has 12 width^2 parameters; the root owns the embedding of 1024 tokens.
  const std::size_t width = options.width;
  const Group root(1024 * width, ranks);
  std::vector<Group> blocks;
  blocks.reserve(options.blocks);
  for (int i = 0; i < options.blocks; ++i) blocks.emplace_back(12 * width * width, ranks);

  const std::size_t tokens = 8 * 128;
  float* device_input = device_floats(tokens);
  float* device_loss = device_floats(1);
  void* host_input = nullptr;
  CHECK(cudaMallocHost(&host_input, tokens * sizeof(float)));
  std::memset(host_input, 0, tokens * sizeof(float));
  CHECK(cudaMemset(device_loss, 0, sizeof(float)));

  for (int step = 1; step <= options.steps; ++step) {
    CHECK(cudaMemcpyAsync(device_input, host_input, tokens * sizeof(float), cudaMemcpyHostToDevice,
                          stream));
    root.gather(comm, stream);
    for (const Group& block : blocks) block.gather(comm, stream);

    // Backward issues the next block's all-gather before this one's reduce-scatter. This prefetch
    // lets FSDP overlap the two with computation.
    blocks.back().gather(comm, stream);
    for (std::size_t i = blocks.size(); i-- > 0;) {
      if (i > 0) blocks[i - 1].gather(comm, stream);
      blocks[i].scatter_gradient(comm, stream);
    }
    root.scatter_gradient(comm, stream);

    float loss = 0;
    CHECK(cudaMemcpyAsync(&loss, device_loss, sizeof loss, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    if (rank == 0) {
      std::printf("step %3d\n", step);
      std::fflush(stdout);
    }
  }
  CHECK(cudaFreeHost(host_input));
  CHECK(cudaStreamDestroy(stream));
  CHECK(ncclCommDestroy(comm));
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (std::getenv("NATIVE_TRAINER_ID") == nullptr) return launch(options.ranks, argv);
  train(options);
}
