// Puts work on devices as its arguments say, which differs in what is hidden behind computation and
// looks alike to the host.
//
//   device_work STEPS BEFORE BEHIND BESIDE STEP...
//
// Each is a list of statements (kStatements below), separated by semicolons. It makes STEPS steps
// between BEFORE and BEHIND; the STEPs take turns. Meanwhile another thread does BESIDE again and
// again. With STANDIN_BLOCK_US=1 and STANDIN_GBPS=0.001 each piece of work takes as long as it
// says: a kernel takes 1 us for each block, a call or copy 1 us for each byte.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

namespace {

constexpr size_t kBytes = 4 << 20;  // of each buffer: the longest call takes 4 s

void kernel_body() {}
const auto* const kBody = reinterpret_cast<const void*>(&kernel_body);
constexpr dim3 kOne{1, 1, 1};

std::map<std::string, cudaStream_t> streams = {{"default", nullptr},
                                               {"thread", cudaStreamPerThread}};
std::map<std::string, ncclComm_t> comms;
std::map<std::string, cudaGraphExec_t> graphs;
std::map<std::string, std::atomic<cudaEvent_t>> marks;  // the latest event of each name
std::vector<cudaEvent_t> events(512);
std::atomic<size_t> next_event{0};
std::atomic<int> steps_made{0}, times_beside{0};
std::atomic<bool> over{false};
char *data, *more, *pinned;

struct Words {
  std::string statement;
  std::vector<std::string> words;

  cudaStream_t stream(size_t i = 0) const { return streams.at(words.at(i)); }
  unsigned number(size_t i, unsigned otherwise = 0) const {
    return i < words.size() ? static_cast<unsigned>(std::stoul(words[i])) : otherwise;
  }
  ncclComm_t comm() const { return comms.at(words.size() > 2 ? words[2] : "world"); }
};

cudaStream_t new_stream(unsigned flags = cudaStreamNonBlocking) {
  cudaStream_t made = nullptr;
  OK(cudaStreamCreateWithFlags(&made, flags));
  return made;
}

ncclComm_t new_comm() {
  ncclComm_t made = nullptr;
  ncclUniqueId id;
  OK(ncclGetUniqueId(&id));
  OK(ncclCommInitRank(&made, 1, id, 0));
  return made;
}

cudaEvent_t record(cudaStream_t on) {
  cudaEvent_t event = events[next_event++ % events.size()];
  OK(cudaEventRecord(event, on));
  return event;
}

cudaLaunchConfig_t blocks(unsigned us, cudaStream_t on) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3{us, 1, 1};
  config.blockDim = kOne;
  config.stream = on;
  return config;
}

template <typename F>
F* driver(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<F*>(dlsym(library, name));
}
#define DRIVER(function) driver<decltype(function)>(#function)

const std::map<std::string, std::function<void(const Words&)>> kStatements = {
    // Kernels: STREAM US [TIMES]; by other functions; in a graph, NAME STREAM
    {"kernel",
     [](const Words& w) {
       for (unsigned i = 0; i < w.number(2, 1); ++i) {
         OK(cudaLaunchKernel(kBody, dim3{w.number(1), 1, 1}, kOne, nullptr, 0, w.stream()));
       }
     }},
    {"kernel_ex",
     [](const Words& w) {
       const cudaLaunchConfig_t config = blocks(w.number(1), w.stream());
       OK(cudaLaunchKernelExC(&config, kBody, nullptr));
     }},
    {"kernel_cooperative",
     [](const Words& w) {
       OK(cudaLaunchCooperativeKernel(kBody, dim3{w.number(1), 1, 1}, kOne, nullptr, 0,
                                      w.stream()));
     }},
    {"kernel_driver",
     [](const Words& w) {
       OK(DRIVER(cuLaunchKernel)(nullptr, w.number(1), 1, 1, 1, 1, 1, 0, w.stream(), nullptr,
                                 nullptr));
     }},
    {"kernel_driver_ex",
     [](const Words& w) {
       CUlaunchConfig config{};
       config.gridDimX = w.number(1);
       config.gridDimY = config.gridDimZ = 1;
       config.hStream = w.stream();
       OK(DRIVER(cuLaunchKernelEx)(&config, nullptr, nullptr, nullptr));
     }},
    {"host",
     [](const Words& w) {
       static std::atomic<unsigned> us;
       us = w.number(1);
       OK(cudaLaunchHostFunc(
           w.stream(), [](void*) { usleep(us); }, nullptr));
     }},
    {"capture",
     [](const Words& w) {
       OK(cudaStreamBeginCapture(w.stream(), cudaStreamCaptureModeThreadLocal));
     }},
    {"captured",
     [](const Words& w) {
       cudaGraph_t graph = nullptr;
       OK(cudaStreamEndCapture(w.stream(), &graph));
       OK(cudaGraphInstantiate(&graphs[w.words[1]], graph, 0));
     }},
    {"launch", [](const Words& w) { OK(cudaGraphLaunch(graphs.at(w.words[1]), w.stream())); }},
    // Calls: STREAM US [COMM]
    {"gather",
     [](const Words& w) {
       OK(ncclAllGather(data, more, w.number(1), ncclInt8, w.comm(), w.stream()));
     }},
    {"scatter",
     [](const Words& w) {
       OK(ncclReduceScatter(data, more, w.number(1), ncclInt8, ncclSum, w.comm(), w.stream()));
     }},
    {"reduce",
     [](const Words& w) {
       OK(ncclAllReduce(data, more, w.number(1), ncclInt8, ncclSum, w.comm(), w.stream()));
     }},
    {"all_to_all",
     [](const Words& w) {
       OK(ncclAlltoAll(data, more, w.number(1), ncclInt8, w.comm(), w.stream()));
     }},
    {"broadcast",
     [](const Words& w) {
       OK(ncclBroadcast(data, more, w.number(1), ncclInt8, 0, w.comm(), w.stream()));
     }},
    {"send",
     [](const Words& w) { OK(ncclSend(data, w.number(1), ncclInt8, 0, w.comm(), w.stream())); }},
    {"receive",
     [](const Words& w) { OK(ncclRecv(more, w.number(1), ncclInt8, 0, w.comm(), w.stream())); }},
    {"group", [](const Words&) { OK(ncclGroupStart()); }},
    {"end_group", [](const Words&) { OK(ncclGroupEnd()); }},
    // Copies: STREAM US
    {"h2d",
     [](const Words& w) {
       OK(cudaMemcpyAsync(data, pinned, w.number(1), cudaMemcpyHostToDevice, w.stream()));
     }},
    {"d2h",
     [](const Words& w) {
       OK(cudaMemcpyAsync(pinned, data, w.number(1), cudaMemcpyDeviceToHost, w.stream()));
     }},
    {"d2d",
     [](const Words& w) {
       OK(cudaMemcpyAsync(more, data, w.number(1), cudaMemcpyDeviceToDevice, w.stream()));
     }},
    // Events: STREAM NAME; FIRST SECOND
    {"record", [](const Words& w) { marks[w.words[1]] = record(w.stream()); }},
    {"wait", [](const Words& w) { OK(cudaStreamWaitEvent(w.stream(), marks.at(w.words[1]), 0)); }},
    {"order", [](const Words& w) { OK(cudaStreamWaitEvent(w.stream(1), record(w.stream()), 0)); }},
    {"order_driver",
     [](const Words& w) {
       cudaEvent_t event = events[next_event++ % events.size()];
       OK(DRIVER(cuEventRecord)(event, w.stream()));
       OK(DRIVER(cuStreamWaitEvent)(w.stream(1), event, 0));
     }},
    // The host: US; STREAM, or the device; NAME of an event
    {"sleep", [](const Words& w) { usleep(w.number(0)); }},
    {"sync",
     [](const Words& w) {
       OK(w.words.empty() ? cudaDeviceSynchronize() : cudaStreamSynchronize(w.stream()));
     }},
    {"await", [](const Words& w) { OK(cudaEventSynchronize(marks.at(w.words[0]))); }},
    {"poll",
     [](const Words& w) {
       while (cudaEventQuery(marks.at(w.words[0])) == cudaErrorNotReady) usleep(500);
     }},
    {"query",
     [](const Words& w) {
       if (cudaEvent_t event = marks[w.words[0]]) (void)cudaEventQuery(event);
     }},
    {"item",  // as PyTorch's .item()
     [](const Words& w) {
       float value = 0;
       OK(cudaMemcpyAsync(&value, data, sizeof value, cudaMemcpyDeviceToHost, w.stream()));
       OK(cudaStreamSynchronize(w.stream()));
     }},
    {"step_made", [](const Words&) { ++steps_made; }},
    // A thread beside is so many steps ahead at most; the job has to wait for it so many times.
    {"at_most_ahead",
     [](const Words& w) {
       while (!over && times_beside > steps_made + static_cast<int>(w.number(0))) usleep(200);
     }},
    {"times_beside",
     [](const Words& w) {
       while (times_beside < static_cast<int>(w.number(0))) usleep(500);
     }},
    // These make or choose something: NAME
    {"device", [](const Words& w) { OK(cudaSetDevice(static_cast<int>(w.number(0)))); }},
    {"stream", [](const Words& w) { streams[w.words[0]] = new_stream(); }},
    {"blocking_stream",
     [](const Words& w) { streams[w.words[0]] = new_stream(cudaStreamDefault); }},
    {"destroy", [](const Words& w) { OK(cudaStreamDestroy(w.stream())); }},
    {"comm", [](const Words& w) { comms[w.words[0]] = new_comm(); }},
};

using Program = std::vector<Words>;

Program parsed(const char* text) {
  Program program;
  std::istringstream all(text);
  for (std::string one; std::getline(all, one, ';');) {
    std::istringstream in(one);
    Words w;
    if (!(in >> w.statement)) continue;
    MUST(kStatements.contains(w.statement));
    for (std::string word; in >> word;) w.words.push_back(word);
    if (w.statement == "record") marks[w.words.at(1)];  // no thread may add it later
    program.push_back(std::move(w));
  }
  return program;
}

void run(const Program& program) {
  for (const Words& w : program) kStatements.at(w.statement)(w);
}

}  // namespace

int main(int argc, char** argv) {
  MUST(argc > 5);
  for (const char* name : {"compute", "comm", "side", "copies"}) streams[name] = new_stream();
  comms["world"] = new_comm();
  OK(cudaMalloc(reinterpret_cast<void**>(&data), kBytes));
  OK(cudaMalloc(reinterpret_cast<void**>(&more), kBytes));
  OK(cudaMallocHost(reinterpret_cast<void**>(&pinned), kBytes));
  for (auto& event : events) OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const Program before = parsed(argv[2]), behind = parsed(argv[3]), beside = parsed(argv[4]);
  std::vector<Program> steps;
  for (int i = 5; i < argc; ++i) steps.push_back(parsed(argv[i]));
  run(before);
  std::thread other;
  if (!beside.empty()) {
    other = std::thread([&] {
      for (; !over; ++times_beside) run(beside);
    });
  }
  for (size_t i = 0; i < std::stoul(argv[1]); ++i) run(steps[i % steps.size()]);
  run(behind);
  over = true;
  if (other.joinable()) other.join();
  OK(cudaDeviceSynchronize());
  OK(ncclCommDestroy(comms["world"]));
}
