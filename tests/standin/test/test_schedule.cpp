// The schedule: when device work begins and ends, and what is written about it.
#include <cuda.h>
#include <nccl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "test/catch.h"

namespace {

namespace fs = std::filesystem;

// Set before the first work of the process, since these variables are read once.
const fs::path folder = [] {
  std::string name = (fs::temp_directory_path() / "standin-schedule-XXXXXX").string();
  if (!mkdtemp(name.data())) std::abort();
  setenv("STANDIN_SCHEDULE", name.c_str(), 1);
  setenv("STANDIN_BLOCK_US", "1", 1);
  setenv("STANDIN_GBPS", "0.001", 1);  // a byte a microsecond
  return fs::path(name);
}();

struct Line {
  unsigned long long stream;
  std::string what;
  long long reached, began, ended;
  int device, calls, in_graph;
  std::string way;
  long long took() const { return ended - began; }
};

// Returns the lines written since the last call, without markers.
std::vector<Line> written() {
  static size_t before = 0;
  std::ifstream file(folder / ("schedule-" + std::to_string(getpid())));
  std::vector<Line> all;
  for (std::string text; std::getline(file, text);) {
    std::istringstream in(text);
    Line l;
    in >> l.stream >> l.what >> l.reached >> l.began >> l.ended >> l.device >> l.calls >>
        l.in_graph >> l.way;
    REQUIRE(in);
    if (l.what != "marker") all.push_back(l);
  }
  std::vector<Line> fresh(all.begin() + static_cast<std::ptrdiff_t>(before), all.end());
  before = all.size();
  return fresh;
}

cudaStream_t stream(int device = 0) {
  cudaStream_t made = nullptr;
  REQUIRE(cudaSetDevice(device) == cudaSuccess);
  REQUIRE(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking) == cudaSuccess);
  return made;
}

void body() {}
void kernel(cudaStream_t on, unsigned us) {
  REQUIRE(cudaLaunchKernel(reinterpret_cast<const void*>(&body), dim3{us, 1, 1}, dim3{1, 1, 1},
                           nullptr, 0, on) == cudaSuccess);
}

ncclComm_t communicator() {
  ncclComm_t made = nullptr;
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  REQUIRE(ncclCommInitRank(&made, 1, id, 0) == ncclSuccess);
  return made;
}

float* memory() {
  void* made = nullptr;
  REQUIRE(cudaMalloc(&made, 1 << 20) == cudaSuccess);
  return static_cast<float*>(made);
}

// Work that is queued behind this begins when this ends, not when the host came to submit it.
void fill(cudaStream_t on) {
  kernel(on, 20'000);
}

}  // namespace

TEST_CASE("kernels take what their grid says, one right behind the other, and other streams' too") {
  const cudaStream_t one = stream(), two = stream();
  for (const cudaStream_t s : {one, two}) fill(s);
  for (int i = 0; i < 50; ++i) {
    kernel(one, 100);
    kernel(two, 300);
  }
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  std::map<unsigned long long, std::vector<Line>> lines;
  for (const Line& l : written()) {
    REQUIRE(l.what == "kernel");
    lines[l.stream].push_back(l);
  }
  REQUIRE(lines.size() == 2);
  for (const auto& [id, of_stream] : lines) {
    REQUIRE(of_stream.size() == 51);
    const bool first = of_stream[1].took() == 100'000;
    for (size_t i = 1; i < of_stream.size(); ++i) {
      REQUIRE(of_stream[i].began == of_stream[i - 1].ended);
      REQUIRE(of_stream[i].took() == (first ? 100'000 : 300'000));
    }
  }
  const auto &a = lines.begin()->second, &b = lines.rbegin()->second;
  REQUIRE(a.front().began < b.back().ended);
  REQUIRE(b.front().began < a.back().ended);
}

TEST_CASE("calls of one communicator never run at once, whatever their streams") {
  const cudaStream_t one = stream(), two = stream();
  const ncclComm_t comm = communicator(), other = communicator();
  float* const data = memory();
  fill(one);
  for (int i = 0; i < 10; ++i) {
    REQUIRE(ncclAllGather(data, data, 500, ncclFloat, comm, i % 2 ? one : two) == ncclSuccess);
  }
  REQUIRE(ncclAllReduce(data, data, 500, ncclFloat, ncclSum, other, stream()) == ncclSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  long long before = 0, end = 0, alone = 0;
  int calls = 0;
  for (const Line& l : written()) {
    if (l.what == "ncclAllReduce") alone = l.ended;
    if (l.what != "ncclAllGather") continue;
    REQUIRE(l.took() == 2'000'000);
    REQUIRE(l.began >= before);
    before = end = l.ended;
    ++calls;
  }
  REQUIRE(calls == 10);
  REQUIRE(alone < end);
  REQUIRE(ncclCommDestroy(comm) == ncclSuccess);
  REQUIRE(ncclCommDestroy(other) == ncclSuccess);
}

TEST_CASE("what waits begins when what it waits for has ended") {
  const cudaStream_t one = stream(), two = stream();
  cudaEvent_t event = nullptr;
  REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
  fill(one);
  REQUIRE(cudaEventRecord(event, one) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(two, event, 0) == cudaSuccess);
  kernel(two, 10);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  const auto lines = written();
  REQUIRE(lines.size() == 2);
  REQUIRE(lines[1].began == lines[0].ended);
}

TEST_CASE("copies, functions, groups and devices are told apart") {
  const cudaStream_t one = stream(1);
  const ncclComm_t comm = communicator();
  float *const data = memory(), *const more = memory();
  REQUIRE(cudaMemcpyAsync(more, data, 300, cudaMemcpyDeviceToDevice, one) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(data, 0, 8, one) == cudaSuccess);
  REQUIRE(cudaLaunchHostFunc(
              one, [](void*) {}, nullptr) == cudaSuccess);
  REQUIRE(ncclGroupStart() == ncclSuccess);
  REQUIRE(ncclSend(data, 1, ncclFloat, 0, comm, one) == ncclSuccess);
  REQUIRE(ncclRecv(more, 1, ncclFloat, 0, comm, one) == ncclSuccess);
  REQUIRE(ncclGroupEnd() == ncclSuccess);
  REQUIRE(cudaStreamSynchronize(one) == cudaSuccess);
  std::string whats;
  for (const Line& l : written()) {
    whats += l.what + " ";
    REQUIRE(l.device == 1);
    if (l.what == "cudaMemcpyAsync") REQUIRE((l.took() == 300'000 && l.way == "D2D"));
    if (l.what == "ncclRecv+ncclSend") REQUIRE(l.calls == 2);
  }
  REQUIRE(whats == "cudaMemcpyAsync memset host ncclRecv+ncclSend ");
  REQUIRE(ncclCommDestroy(comm) == ncclSuccess);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}

TEST_CASE("the driver's launches are kernels too") {
  const cudaStream_t one = stream();
  REQUIRE(cuLaunchKernel(nullptr, 50, 4, 2, 1, 1, 1, 0, one, nullptr, nullptr) == CUDA_SUCCESS);
  CUlaunchConfig config{};
  config.gridDimX = 300;
  config.gridDimY = config.gridDimZ = 1;
  config.hStream = one;
  REQUIRE(cuLaunchKernelEx(&config, nullptr, nullptr, nullptr) == CUDA_SUCCESS);
  REQUIRE(cudaStreamSynchronize(one) == cudaSuccess);
  const auto lines = written();
  REQUIRE(lines.size() == 2);
  REQUIRE(lines[0].what == "kernel");
  REQUIRE(lines[0].took() == 400'000);
  REQUIRE(lines[1].took() == 300'000);
}

TEST_CASE("a graph's launch is from its first work to its last") {
  const cudaStream_t one = stream();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  REQUIRE(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  kernel(one, 400);
  kernel(one, 600);
  REQUIRE(cudaStreamEndCapture(one, &graph) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
  for (int i = 0; i < 2; ++i) REQUIRE(cudaGraphLaunch(executable, one) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(one) == cudaSuccess);
  int launches = 0, kernels = 0;
  for (const Line& l : written()) {
    if (l.what == "graph") REQUIRE(l.took() == 1'000'000);
    launches += l.what == "graph";
    kernels += l.what == "kernel" && l.in_graph == 1;
  }
  REQUIRE(launches == 2);
  REQUIRE(kernels == 4);
  fs::remove_all(folder);
}
