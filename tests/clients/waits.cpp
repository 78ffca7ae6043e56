// Computation that waits for all-gathers in one of the ways that frameworks have:
//
//   waits SITUATION [ROUNDS [KERNELS]]
//
// A round: KERNELS kernels on the stream that computes between an all-gather on a stream of its own
// and the wait for it, one kernel behind the wait. Nothing is waited for by the host before the end
// but where the situation says so.

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#define CHECK(call)                                          \
  do {                                                       \
    if (const auto error = (call)) {                         \
      std::fprintf(stderr, "waits: %s: %d\n", #call, error); \
      std::exit(1);                                          \
    }                                                        \
  } while (false)

namespace {

constexpr size_t kCount = 256;

struct World {
  cudaStream_t compute, gather, side, far;
  cudaEvent_t computed, gathered, relayed, further;
  ncclComm_t comm;
  float *send, *receive;
  int kernels;
};

void kernel_body() {}

void compute(cudaStream_t stream, int kernels) {
  for (int i = 0; i < kernels; ++i) {
    CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(&kernel_body), dim3{1, 1, 1},
                           dim3{1, 1, 1}, nullptr, 0, stream));
  }
}

void gather(const World& w) {
  CHECK(cudaEventRecord(w.computed, w.compute));
  CHECK(cudaStreamWaitEvent(w.gather, w.computed, 0));
  CHECK(ncclAllGather(w.send, w.receive, kCount, ncclFloat, w.comm, w.gather));
}

void wait(cudaStream_t from, cudaEvent_t event, cudaStream_t stream) {
  CHECK(cudaEventRecord(event, from));
  CHECK(cudaStreamWaitEvent(stream, event, 0));
}

const std::map<std::string, std::function<void(const World&)>> kSituations = {
    {"direct",
     [](const World& w) {
       gather(w);
       CHECK(cudaEventRecord(w.gathered, w.gather));
       compute(w.compute, w.kernels);
       CHECK(cudaStreamWaitEvent(w.compute, w.gathered, 0));
     }},
    // c10d's: a side stream waits at once, and is waited for.
    {"relay",
     [](const World& w) {
       gather(w);
       wait(w.gather, w.gathered, w.side);
       CHECK(cudaEventRecord(w.relayed, w.side));
       compute(w.compute, w.kernels);
       CHECK(cudaStreamWaitEvent(w.compute, w.relayed, 0));
     }},
    {"two_relays",
     [](const World& w) {
       gather(w);
       wait(w.gather, w.gathered, w.side);
       wait(w.side, w.relayed, w.far);
       CHECK(cudaEventRecord(w.further, w.far));
       compute(w.compute, w.kernels);
       CHECK(cudaStreamWaitEvent(w.compute, w.further, 0));
     }},
    // FSDP2's reduce-scatter: the side stream does something with what came, and is waited for
    // late.
    {"side_work",
     [](const World& w) {
       gather(w);
       wait(w.gather, w.gathered, w.side);
       compute(w.side, 1);
       CHECK(cudaEventRecord(w.relayed, w.side));
       compute(w.compute, 8 * w.kernels);
       CHECK(cudaStreamWaitEvent(w.compute, w.relayed, 0));
     }},
    // The event is another one by the time it is waited for.
    {"recorded_again",
     [](const World& w) {
       gather(w);
       CHECK(cudaEventRecord(w.gathered, w.gather));
       CHECK(ncclAllGather(w.send, w.receive, kCount, ncclFloat, w.comm, w.gather));
       CHECK(cudaEventRecord(w.gathered, w.gather));
       compute(w.compute, w.kernels);
       CHECK(cudaStreamWaitEvent(w.compute, w.gathered, 0));
     }},
    // Another stream waits for what was computed with what came.
    {"behind_compute",
     [](const World& w) {
       gather(w);
       CHECK(cudaEventRecord(w.gathered, w.gather));
       compute(w.compute, w.kernels);
       CHECK(cudaStreamWaitEvent(w.compute, w.gathered, 0));
       compute(w.compute, 2);
       wait(w.compute, w.relayed, w.far);
     }},
    {"stream_synchronize",
     [](const World& w) {
       gather(w);
       compute(w.compute, w.kernels);
       CHECK(cudaStreamSynchronize(w.gather));
     }},
    {"event_synchronize",
     [](const World& w) {
       gather(w);
       CHECK(cudaEventRecord(w.gathered, w.gather));
       compute(w.compute, w.kernels);
       CHECK(cudaEventSynchronize(w.gathered));
     }},
    {"device_synchronize",
     [](const World& w) {
       gather(w);
       CHECK(cudaDeviceSynchronize());
     }},
    // Nobody waits for it.
    {"nobody", [](const World& w) { gather(w); }},
    // An event that we saw nobody record, as another process's is.
    {"unknown_event",
     [](const World& w) {
       gather(w);
       cudaEvent_t never;
       CHECK(cudaEventCreateWithFlags(&never, cudaEventDisableTiming));
       compute(w.compute, w.kernels);
       CHECK(cudaStreamWaitEvent(w.compute, never, 0));
     }},
    {"in_a_capture",
     [](const World& w) {
       cudaGraph_t graph;
       cudaGraphExec_t executable;
       CHECK(cudaStreamBeginCapture(w.compute, cudaStreamCaptureModeThreadLocal));
       gather(w);
       CHECK(cudaEventRecord(w.gathered, w.gather));
       compute(w.compute, w.kernels);
       CHECK(cudaStreamWaitEvent(w.compute, w.gathered, 0));
       compute(w.compute, 1);
       CHECK(cudaStreamEndCapture(w.compute, &graph));
       CHECK(cudaGraphInstantiate(&executable, graph, 0));
       CHECK(cudaGraphLaunch(executable, w.compute));
     }},
};

}  // namespace

int main(int argc, char** argv) {
  const auto situation = argc > 1 ? kSituations.find(argv[1]) : kSituations.end();
  if (situation == kSituations.end()) {
    for (const auto& [name, run] : kSituations) std::puts(name.c_str());
    return argc > 1;
  }
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 10;
  World w{};
  w.kernels = argc > 3 ? std::atoi(argv[3]) : 1;
  for (cudaStream_t* stream : {&w.compute, &w.gather, &w.side, &w.far}) {
    CHECK(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
  }
  for (cudaEvent_t* event : {&w.computed, &w.gathered, &w.relayed, &w.further}) {
    CHECK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
  }
  ncclUniqueId id;
  CHECK(ncclGetUniqueId(&id));
  CHECK(ncclCommInitRank(&w.comm, 1, id, 0));
  CHECK(cudaMalloc(reinterpret_cast<void**>(&w.send), kCount * sizeof(float)));
  CHECK(cudaMalloc(reinterpret_cast<void**>(&w.receive), kCount * sizeof(float)));
  for (int i = 0; i < rounds; ++i) {
    situation->second(w);
    compute(w.compute, 1);
  }
  for (cudaStream_t stream : {w.compute, w.side, w.far}) CHECK(cudaStreamSynchronize(stream));
  while (cudaStreamQuery(w.gather) == cudaErrorNotReady) usleep(1000);  // asks, and does not wait
  CHECK(ncclCommDestroy(w.comm));
  return 0;
}
