// A shape of training is made of these: streams, kernels, calls, and ends of steps.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "../check.h"

inline cudaStream_t new_stream() {
  cudaStream_t made;
  OK(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
  return made;
}

inline ncclComm_t new_comm() {
  ncclComm_t made;
  ncclUniqueId id;
  OK(ncclGetUniqueId(&id));
  OK(ncclCommInitRank(&made, 1, id, 0));
  return made;
}

void kernel_body();

struct Job {
  static constexpr size_t kBytes = 4 << 20;  // bytes of each buffer: the longest call takes 4 s

  std::string ending;
  int step = 0;
  cudaStream_t compute = new_stream(), comm = new_stream(), side = new_stream(),
               copies = new_stream();
  ncclComm_t world = new_comm();
  char *data, *more, *pinned;
  std::vector<cudaEvent_t> events;
  size_t next_event = 0;

  explicit Job(std::string how_a_step_ends);
  void end_step();

  void kernel(cudaStream_t on, unsigned us) const {
    OK(cudaLaunchKernel(reinterpret_cast<const void*>(&kernel_body), dim3{us, 1, 1}, dim3{1, 1, 1},
                        nullptr, 0, on));
  }
  void kernels(cudaStream_t on, int how_many, unsigned us) const {
    for (int i = 0; i < how_many; ++i) kernel(on, us);
  }
  void gather(cudaStream_t on, size_t us, ncclComm_t of = nullptr) const {
    OK(ncclAllGather(data, more, us, ncclInt8, of ? of : world, on));
  }
  void scatter(cudaStream_t on, size_t us) const {
    OK(ncclReduceScatter(data, more, us, ncclInt8, ncclSum, world, on));
  }
  void reduce(cudaStream_t on, size_t us) const {
    OK(ncclAllReduce(data, more, us, ncclInt8, ncclSum, world, on));
  }
  void h2d(cudaStream_t on, size_t us) const {
    OK(cudaMemcpyAsync(data, pinned, us, cudaMemcpyHostToDevice, on));
  }
  void d2h(cudaStream_t on, size_t us) const {
    OK(cudaMemcpyAsync(pinned, data, us, cudaMemcpyDeviceToHost, on));
  }
  void d2d(cudaStream_t on, size_t us) const {
    OK(cudaMemcpyAsync(more, data, us, cudaMemcpyDeviceToDevice, on));
  }

  cudaEvent_t record(cudaStream_t on) {
    cudaEvent_t event = events[next_event++ % events.size()];
    OK(cudaEventRecord(event, on));
    return event;
  }
  static void wait(cudaStream_t who, cudaEvent_t event) { OK(cudaStreamWaitEvent(who, event, 0)); }
  void order(cudaStream_t before, cudaStream_t after) { wait(after, record(before)); }

  // Makes a call on `comm` and launches kernels beside it; they wait for the call before a last
  // one. Returns the event behind the call.
  cudaEvent_t layer(const std::function<void()>& call, int beside, unsigned us, unsigned last_us) {
    return layer(call, beside, us, last_us, compute);
  }
  cudaEvent_t layer(const std::function<void()>& call, int beside, unsigned us, unsigned last_us,
                    cudaStream_t computes) {
    order(computes, comm);
    call();
    cudaEvent_t done = record(comm);
    kernels(computes, beside, us);
    wait(computes, done);
    kernel(computes, last_us);
    return done;
  }

  // Reads a value as PyTorch's .item() does.
  static void item(cudaStream_t on, const void* from) {
    float value;
    OK(cudaMemcpyAsync(&value, from, sizeof value, cudaMemcpyDeviceToHost, on));
    OK(cudaStreamSynchronize(on));
  }
};

// Does something again and again on a thread of its own, for as long as this lives.
class Beside {
 public:
  explicit Beside(const std::function<void()>& again)
      : thread_([this, again] {
          while (!over_) again();
        }) {}
  ~Beside() {
    over_ = true;
    thread_.join();
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

using Shape = std::function<void(Job&, int steps)>;
using Shapes = std::map<std::string, Shape>;

// Makes a shape that does the same in each step.
inline Shape each(std::function<void(Job&)> step) {
  return [step = std::move(step)](Job& j, int steps) {
    for (int i = 0; i < steps; ++i) {
      step(j);
      j.end_step();
    }
  };
}

// One list for each file of this folder.
Shapes overlap();
Shapes trainers();
Shapes hosts();
Shapes streams();
Shapes functions();
