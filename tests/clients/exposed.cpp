// Steps of training as frameworks put them on the device: what is hidden behind computation and
// what is not, in shapes that look alike to the host.
//
//   exposed SHAPE ENDING [STEPS]
//
// ENDING is how a step ends for the host (kEndings below). The device takes as long for each piece
// of work as the program says, with STANDIN_BLOCK_US=1 and STANDIN_GBPS=0.001: a kernel has a
// block, a call or copy a byte for each microsecond. Without arguments: the names of all shapes.

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#define CHECK(call)                                            \
  do {                                                         \
    if (const auto error = (call)) {                           \
      std::fprintf(stderr, "exposed: %s: %d\n", #call, error); \
      std::exit(1);                                            \
    }                                                          \
  } while (false)

namespace {

constexpr size_t kBytes = 4 << 20;  // of each buffer: the longest call takes 4 s

void kernel_body() {}

cudaStream_t new_stream() {
  cudaStream_t made;
  CHECK(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
  return made;
}

ncclComm_t new_comm() {
  ncclComm_t made;
  ncclUniqueId id;
  CHECK(ncclGetUniqueId(&id));
  CHECK(ncclCommInitRank(&made, 1, id, 0));
  return made;
}

struct Job {
  std::string ending;
  int step = 0;
  cudaStream_t compute, comm, side, copies;
  ncclComm_t world;
  char *data, *more, *pinned;
  std::vector<cudaEvent_t> events;
  size_t next_event = 0;

  Job()
      : compute(new_stream()),
        comm(new_stream()),
        side(new_stream()),
        copies(new_stream()),
        world(new_comm()) {
    CHECK(cudaMalloc(reinterpret_cast<void**>(&data), kBytes));
    CHECK(cudaMalloc(reinterpret_cast<void**>(&more), kBytes));
    CHECK(cudaMallocHost(reinterpret_cast<void**>(&pinned), kBytes));
    events.resize(512);
    for (auto& event : events) {
      CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    }
  }

  void kernel(cudaStream_t on, unsigned us) const {
    CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(&kernel_body), dim3{us, 1, 1},
                           dim3{1, 1, 1}, nullptr, 0, on));
  }
  void kernels(cudaStream_t on, int how_many, unsigned us) const {
    for (int i = 0; i < how_many; ++i) kernel(on, us);
  }
  void gather(cudaStream_t on, size_t us, ncclComm_t of = nullptr) const {
    CHECK(ncclAllGather(data, more, us, ncclInt8, of ? of : world, on));
  }
  void scatter(cudaStream_t on, size_t us, ncclComm_t of = nullptr) const {
    CHECK(ncclReduceScatter(data, more, us, ncclInt8, ncclSum, of ? of : world, on));
  }
  void reduce(cudaStream_t on, size_t us, ncclComm_t of = nullptr) const {
    CHECK(ncclAllReduce(data, more, us, ncclInt8, ncclSum, of ? of : world, on));
  }
  void h2d(cudaStream_t on, size_t us) const {
    CHECK(cudaMemcpyAsync(data, pinned, us, cudaMemcpyHostToDevice, on));
  }
  void d2h(cudaStream_t on, size_t us) const {
    CHECK(cudaMemcpyAsync(pinned, data, us, cudaMemcpyDeviceToHost, on));
  }
  void d2d(cudaStream_t on, size_t us) const {
    CHECK(cudaMemcpyAsync(more, data, us, cudaMemcpyDeviceToDevice, on));
  }

  cudaEvent_t record(cudaStream_t on) {
    cudaEvent_t event = events[next_event++ % events.size()];
    CHECK(cudaEventRecord(event, on));
    return event;
  }
  static void wait(cudaStream_t who, cudaEvent_t event) {
    CHECK(cudaStreamWaitEvent(who, event, 0));
  }
  void order(cudaStream_t before, cudaStream_t after) { wait(after, record(before)); }

  // As PyTorch does it.
  static void item(cudaStream_t on, const void* from) {
    float value;
    CHECK(cudaMemcpyAsync(&value, from, sizeof value, cudaMemcpyDeviceToHost, on));
    CHECK(cudaStreamSynchronize(on));
  }
  void end_step();
};

const std::map<std::string, std::function<void(Job&)>> kEndings = {
    {"nothing", [](Job&) {}},
    {"item", [](Job& j) { Job::item(j.compute, j.data); }},
    {"stream_synchronize", [](Job& j) { CHECK(cudaStreamSynchronize(j.compute)); }},
    {"device_synchronize", [](Job&) { CHECK(cudaDeviceSynchronize()); }},
    {"event_synchronize", [](Job& j) { CHECK(cudaEventSynchronize(j.record(j.compute))); }},
    // The host asks now and then, as a program does that has other things to do.
    {"polled",
     [](Job& j) {
       cudaEvent_t event = j.record(j.compute);
       while (cudaEventQuery(event) == cudaErrorNotReady) usleep(500);
     }},
    // It waits for nothing, and comes back when the device has long been idle.
    {"idle_host", [](Job&) { usleep(40'000); }},
};

void Job::end_step() {
  kEndings.at(ending)(*this);
  ++step;
}

using Shape = std::function<void(Job&, int steps)>;

// A shape that does the same in each step.
Shape each(std::function<void(Job&)> step) {
  return [step = std::move(step)](Job& j, int steps) {
    for (int i = 0; i < steps; ++i) {
      step(j);
      j.end_step();
    }
  };
}

const std::map<std::string, Shape> kShapes = {
    // Of each all-gather's 8 ms, 5 are behind computation and 3 are waited for.
    {"partly_hidden", each([](Job& j) {
       for (int layer = 0; layer < 3; ++layer) {
         j.order(j.compute, j.comm);
         j.gather(j.comm, 8000);
         cudaEvent_t done = j.record(j.comm);
         j.kernels(j.compute, 5, 1000);
         Job::wait(j.compute, done);
         j.kernel(j.compute, 500);
       }
     })},
    // Reduce-scatters that are through when somebody comes to wait for them.
    {"in_time", each([](Job& j) {
       for (int layer = 0; layer < 3; ++layer) {
         j.order(j.compute, j.comm);
         j.scatter(j.comm, 3000);
         cudaEvent_t done = j.record(j.comm);
         j.kernels(j.compute, 5, 1000);
         Job::wait(j.compute, done);
         j.kernel(j.compute, 500);
       }
     })},
    // Each layer's all-gather is asked for a layer ahead and waited for a little.
    {"many_waits", each([](Job& j) {
       j.order(j.compute, j.comm);
       j.gather(j.comm, 1000);
       cudaEvent_t ready = j.record(j.comm);
       for (int layer = 0; layer < 20; ++layer) {
         Job::wait(j.compute, ready);
         if (layer < 19) {
           j.gather(j.comm, 1000);
           ready = j.record(j.comm);
         }
         j.kernels(j.compute, 2, 440);
       }
     })},
    // Nothing on the device waits for it; the host does.
    {"under_one_kernel", each([](Job& j) {
       j.order(j.compute, j.comm);
       j.gather(j.comm, 6800);
       j.kernel(j.compute, 6000);
       CHECK(cudaDeviceSynchronize());
     })},
    // DDP: a batch comes, forward, backward with bucketed all-reduces beside it, the optimizer.
    {"ddp", each([](Job& j) {
       j.h2d(j.compute, 1000);
       j.kernels(j.compute, 4, 1000);
       cudaEvent_t done = nullptr;
       for (int bucket = 0; bucket < 4; ++bucket) {
         j.kernels(j.compute, 2, 1000);
         j.order(j.compute, j.comm);
         j.reduce(j.comm, 2300);
         done = j.record(j.comm);
       }
       Job::wait(j.compute, done);
       j.kernels(j.compute, 10, 100);
     })},
    // Buckets are filled by copies on the stream that computes.
    {"ddp_copies", each([](Job& j) {
       cudaEvent_t done = nullptr;
       j.kernels(j.compute, 4, 1000);
       for (int bucket = 0; bucket < 4; ++bucket) {
         j.kernels(j.compute, 2, 500);
         for (int i = 0; i < 4; ++i) j.d2d(j.compute, 300);
         j.order(j.compute, j.comm);
         j.reduce(j.comm, 2500);
         done = j.record(j.comm);
       }
       Job::wait(j.compute, done);
       for (int i = 0; i < 4; ++i) j.d2d(j.compute, 300);
       j.kernels(j.compute, 10, 100);
     })},
    // The host waits for a copy of its own while the device goes on computing.
    {"d2h_awaited", each([](Job& j) {
       j.order(j.compute, j.copies);
       j.d2h(j.copies, 3000);
       cudaEvent_t copied = j.record(j.copies);
       j.kernels(j.compute, 8, 1000);
       j.order(j.compute, j.comm);
       j.reduce(j.comm, 2000);
       cudaEvent_t reduced = j.record(j.comm);
       j.kernels(j.compute, 3, 1000);
       CHECK(cudaEventSynchronize(copied));
       Job::wait(j.compute, reduced);
       j.kernel(j.compute, 1000);
     })},
    // A thread writes a checkpoint: it waits for its own copies only.
    {"checkpoint_thread",
     [](Job& j, int steps) {
       std::atomic<bool> over{false};
       std::thread saver([&] {
         const cudaStream_t mine = new_stream();
         while (!over) {
           CHECK(cudaMemcpyAsync(j.pinned + 1000, j.data, 3000, cudaMemcpyDeviceToHost, mine));
           CHECK(cudaStreamSynchronize(mine));
           usleep(3000);
         }
       });
       for (int i = 0; i < steps; ++i) {
         j.kernels(j.compute, 8, 1000);
         j.order(j.compute, j.comm);
         j.reduce(j.comm, 2000);
         cudaEvent_t reduced = j.record(j.comm);
         j.kernels(j.compute, 3, 1000);
         Job::wait(j.compute, reduced);
         j.kernel(j.compute, 1000);
         j.end_step();
       }
       over = true;
       saver.join();
     }},
    // Something long on a stream that is never used again, and then training on another.
    {"other_stream_first",
     [](Job& j, int steps) {
       j.kernels(j.side, 200, 10'000);
       CHECK(cudaStreamSynchronize(j.side));
       for (int i = 0; i < steps; ++i) {
         j.order(j.compute, j.comm);
         j.gather(j.comm, 6200);
         cudaEvent_t done = j.record(j.comm);
         j.kernel(j.compute, 2000);
         Job::wait(j.compute, done);
         j.kernel(j.compute, 3000);
         j.end_step();
       }
     }},
    // A second stream computes a little, where the first one waits too.
    {"light_second_stream", each([](Job& j) {
       for (int layer = 0; layer < 3; ++layer) {
         j.order(j.compute, j.comm);
         j.gather(j.comm, 4000);
         cudaEvent_t done = j.record(j.comm);
         j.order(j.compute, j.side);
         j.kernel(j.side, 3900);  // it and no other is beside the gather's end
         j.kernel(j.compute, 2000);
         Job::wait(j.compute, done);
         j.kernels(j.compute, 40, 1000);
       }
     })},
    // The host is far ahead: nothing is read back before hundreds of calls are queued.
    {"queued_ahead",
     [](Job& j, int steps) {
       const auto one = [&j] {
         for (int layer = 0; layer < 40; ++layer) {
           j.order(j.compute, j.comm);
           j.gather(j.comm, 500);
           cudaEvent_t done = j.record(j.comm);
           j.kernel(j.compute, 475);
           Job::wait(j.compute, done);
           j.kernel(j.compute, 25);
         }
       };
       for (int i = 0; i < 3 * steps; ++i) one();
       j.end_step();
     }},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || !kShapes.contains(argv[1]) || !kEndings.contains(argv[2])) {
    for (const auto& [name, run] : kShapes) std::puts(name.c_str());
    return argc > 1;
  }
  Job job;
  job.ending = argv[2];
  kShapes.at(argv[1])(job, argc > 3 ? std::atoi(argv[3]) : 20);
  CHECK(cudaDeviceSynchronize());
  CHECK(ncclCommDestroy(job.world));
  return 0;
}
