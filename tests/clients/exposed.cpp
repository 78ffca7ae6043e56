// Makes steps of training as frameworks put them on the device. They differ in what is hidden
// behind computation, and look alike to the host.
//
//   exposed SHAPE ENDING [STEPS]
//
// ENDING is how a step ends for the host (kEndings below). With STANDIN_BLOCK_US=1 and
// STANDIN_GBPS=0.001 each piece of work takes as long as the program says: a kernel takes 1 us for
// each block, a call or copy 1 us for each byte. Without arguments it prints all shapes' names.

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
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

constexpr size_t kBytes = 4 << 20;  // bytes of each buffer: the longest call takes 4 s

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

  // Reads a value as PyTorch's .item() does.
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
    // The host polls now and then, like a program that has other things to do.
    {"polled",
     [](Job& j) {
       cudaEvent_t event = j.record(j.compute);
       while (cudaEventQuery(event) == cudaErrorNotReady) usleep(500);
     }},
    // The host waits for nothing, and comes back when the device has long been idle.
    {"idle_host", [](Job&) { usleep(40'000); }},
};

void Job::end_step() {
  kEndings.at(ending)(*this);
  ++step;
}

using Shape = std::function<void(Job&, int steps)>;

// Makes a shape that does the same in each step.
Shape each(std::function<void(Job&)> step) {
  return [step = std::move(step)](Job& j, int steps) {
    for (int i = 0; i < steps; ++i) {
      step(j);
      j.end_step();
    }
  };
}

const std::map<std::string, Shape> kShapes = {
    // Computation hides 5 of each all-gather's 8 ms, and the other 3 are waited for.
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
    // Reduce-scatters have finished when somebody comes to wait for them.
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
    // Each layer's all-gather is issued a layer ahead, and the wait for it is short.
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
    // Only the host waits for the all-gather; nothing on the device does.
    {"under_one_kernel", each([](Job& j) {
       j.order(j.compute, j.comm);
       j.gather(j.comm, 6800);
       j.kernel(j.compute, 6000);
       CHECK(cudaDeviceSynchronize());
     })},
    // DDP copies a batch in, runs forward, backward beside bucketed all-reduces, and the optimizer.
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
    // One stream is busy for long and never used again; then training runs on another.
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
    // A second stream computes a little, also where the first one waits.
    {"light_second_stream", each([](Job& j) {
       for (int layer = 0; layer < 3; ++layer) {
         j.order(j.compute, j.comm);
         j.gather(j.comm, 4000);
         cudaEvent_t done = j.record(j.comm);
         j.order(j.compute, j.side);
         j.kernel(j.side, 3900);  // only this overlaps the end of the gather
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

    // FSDP2 of PyTorch 2.8 and later: reduce-scatters have a stream of their own, but use the
    // communicator of the all-gathers. NCCL therefore makes all-gathers wait for them. Light
    // kernels prepare both.
    {"fsdp2", [](Job& j, int steps) {
       const cudaStream_t copy_in = new_stream(), scatters = new_stream();
       for (int i = 0; i < steps; ++i) {
         cudaEvent_t ready = nullptr, reduced = nullptr;
         for (int layer = 0; layer < 3; ++layer) {
           j.order(j.compute, copy_in);
           j.kernel(copy_in, 50);
           j.order(copy_in, j.comm);
           j.gather(j.comm, 1500);
           ready = j.record(j.comm);
           Job::wait(j.compute, ready);
           j.kernel(j.compute, 50);  // copy out
           j.kernels(j.compute, 2, 500);
         }
         for (int layer = 0; layer < 3; ++layer) {
           j.order(copy_in, j.comm);
           j.gather(j.comm, 1500);
           ready = j.record(j.comm);
           Job::wait(j.compute, ready);
           j.kernels(j.compute, 4, 500);
           j.order(j.compute, scatters);
           j.kernel(scatters, 100);
           j.scatter(scatters, 2500);
           j.kernel(scatters, 50);
           reduced = j.record(scatters);
         }
         Job::wait(j.compute, reduced);
         j.kernels(j.compute, 5, 100);
         j.end_step();
       }
     }},
    // Communicates in the last of four micro-batches only.
    {"accumulation", each([](Job& j) {
       for (int micro = 0; micro < 4; ++micro) {
         j.kernels(j.compute, 3, 1000);
         if (micro < 3) continue;
         for (int bucket = 0; bucket < 3; ++bucket) {
           j.kernel(j.compute, 700);
           j.order(j.compute, j.comm);
           j.reduce(j.comm, 1200);
         }
         j.order(j.comm, j.compute);
       }
       j.kernels(j.compute, 3, 300);
     })},
    // The host is slower than the device, which idles within the step.
    {"cpu_bound", each([](Job& j) {
       j.order(j.compute, j.comm);
       j.reduce(j.comm, 6000);
       for (int i = 0; i < 8; ++i) {
         j.kernel(j.compute, 300);
         usleep(700);
       }
       j.order(j.comm, j.compute);
       j.kernel(j.compute, 300);
     })},
    // Activations are reduced on the stream that computes.
    {"tensor_parallel", each([](Job& j) {
       for (int layer = 0; layer < 6; ++layer) {
         j.kernels(j.compute, 2, 600);
         j.reduce(j.compute, 500);
       }
     })},
    // The same, but another stream computes beside half of each reduction.
    {"tensor_parallel_beside", each([](Job& j) {
       for (int layer = 0; layer < 6; ++layer) {
         j.kernels(j.compute, 2, 600);
         j.order(j.compute, j.side);
         j.kernel(j.side, 500);
         j.reduce(j.compute, 1000);
       }
     })},
    // ZeRO-3 fetches parameters of the next layers ahead, and reduces gradients on the same stream.
    {"zero3", each([](Job& j) {
       std::vector<cudaEvent_t> ready;
       const auto fetch = [&] {
         j.gather(j.comm, 800);
         ready.push_back(j.record(j.comm));
       };
       for (int i = 0; i < 2; ++i) fetch();
       for (int layer = 0; layer < 8; ++layer) {
         Job::wait(j.compute, ready[static_cast<size_t>(layer)]);
         fetch();
         j.kernel(j.compute, 700);
         if (layer >= 4) {
           j.order(j.compute, j.comm);
           j.scatter(j.comm, 600);
         }
       }
       j.order(j.comm, j.compute);
       j.kernels(j.compute, 20, 50);
     })},
    // A pipeline stage sends and receives in one group, on a stream of its own.
    {"pipeline", each([](Job& j) {
       for (int micro = 0; micro < 4; ++micro) {
         CHECK(ncclGroupStart());
         CHECK(ncclSend(j.data, 700, ncclInt8, 0, j.world, j.comm));
         CHECK(ncclRecv(j.more, 700, ncclInt8, 0, j.world, j.comm));
         CHECK(ncclGroupEnd());
         j.order(j.comm, j.compute);
         j.kernels(j.compute, 2, 600);
       }
       j.order(j.compute, j.comm);
       j.reduce(j.comm, 2000);
       j.order(j.comm, j.compute);
       j.kernel(j.compute, 500);
     })},
    // Tokens go to the experts and come back; a shared expert computes meanwhile.
    {"experts", [](Job& j, int steps) {
       const ncclComm_t experts = new_comm();
       for (int i = 0; i < steps; ++i) {
         for (int layer = 0; layer < 4; ++layer) {
           j.kernel(j.compute, 400);
           j.order(j.compute, j.comm);
           CHECK(ncclAlltoAll(j.data, j.more, 1000, ncclInt8, experts, j.comm));
           cudaEvent_t there = j.record(j.comm);
           j.kernel(j.compute, 600);
           Job::wait(j.compute, there);
           j.kernel(j.compute, 800);
           CHECK(ncclAlltoAll(j.data, j.more, 1000, ncclInt8, experts, j.compute));
         }
         j.order(j.compute, j.comm);
         j.reduce(j.comm, 3000);
         j.order(j.comm, j.compute);
         j.kernel(j.compute, 500);
         j.end_step();
       }
     }},
    // The computation is a graph that is replayed, and the calls are outside it.
    {"graphs", [](Job& j, int steps) {
       cudaGraph_t graph;
       cudaGraphExec_t executable;
       CHECK(cudaStreamBeginCapture(j.compute, cudaStreamCaptureModeThreadLocal));
       j.kernels(j.compute, 5, 600);
       CHECK(cudaStreamEndCapture(j.compute, &graph));
       CHECK(cudaGraphInstantiate(&executable, graph, 0));
       for (int i = 0; i < steps; ++i) {
         for (int layer = 0; layer < 3; ++layer) {
           j.order(j.compute, j.comm);
           j.gather(j.comm, 4000);
           cudaEvent_t done = j.record(j.comm);
           CHECK(cudaGraphLaunch(executable, j.compute));
           Job::wait(j.compute, done);
         }
         j.end_step();
       }
     }},
    // The graph contains a call of its own, and another call runs beside it.
    {"graphs_with_calls", [](Job& j, int steps) {
       const ncclComm_t other = new_comm();
       cudaGraph_t graph;
       cudaGraphExec_t executable;
       CHECK(cudaStreamBeginCapture(j.compute, cudaStreamCaptureModeThreadLocal));
       j.kernels(j.compute, 2, 600);
       j.reduce(j.compute, 1500);
       j.kernel(j.compute, 300);
       CHECK(cudaStreamEndCapture(j.compute, &graph));
       CHECK(cudaGraphInstantiate(&executable, graph, 0));
       for (int i = 0; i < steps; ++i) {
         j.order(j.compute, j.comm);
         CHECK(cudaGraphLaunch(executable, j.compute));
         j.gather(j.comm, 5000, other);
         j.order(j.comm, j.compute);
         j.kernel(j.compute, 800);
         j.end_step();
       }
     }},
    // Two devices of one process: computation on one hides nothing on the other.
    {"two_devices", [](Job& j, int steps) {
       CHECK(cudaSetDevice(1));
       const cudaStream_t compute = new_stream(), comm = new_stream();
       const ncclComm_t world = new_comm();
       for (int i = 0; i < steps; ++i) {
         CHECK(cudaSetDevice(1));
         CHECK(ncclAllReduce(j.data, j.more, 3000, ncclInt8, ncclSum, world, comm));
         j.kernel(compute, 500);
         CHECK(cudaSetDevice(0));
         j.gather(j.comm, 3000);
         j.kernels(j.compute, 4, 1000);
         j.order(j.comm, j.compute);
         j.end_step();
         CHECK(cudaSetDevice(1));
         CHECK(cudaStreamSynchronize(comm));
         CHECK(cudaStreamSynchronize(compute));
         CHECK(cudaSetDevice(0));
       }
     }},
    // One thread computes, another communicates, and they know nothing of each other.
    {"two_threads", [](Job& j, int steps) {
       std::atomic<bool> over{false};
       std::thread communicates([&] {
         while (!over) {
           j.reduce(j.comm, 2000);
           CHECK(cudaStreamSynchronize(j.comm));
           usleep(500);
         }
       });
       for (int i = 0; i < steps; ++i) {
         j.kernels(j.compute, 10, 500);
         j.end_step();
         usleep(1000);
       }
       over = true;
       communicates.join();
     }},
    // After every fifth training step come a pause and a step without collectives.
    {"evaluation", [](Job& j, int steps) {
       for (int i = 0; i < steps; ++i) {
         j.kernels(j.compute, 4, 500);
         j.order(j.compute, j.comm);
         j.reduce(j.comm, 1500);
         cudaEvent_t done = j.record(j.comm);
         j.kernels(j.compute, 2, 500);
         Job::wait(j.compute, done);
         j.kernel(j.compute, 300);
         j.end_step();
         if (i % 5 != 4) continue;
         CHECK(cudaDeviceSynchronize());
         usleep(100'000);
         j.kernels(j.compute, 40, 500);
         Job::item(j.compute, j.data);
         usleep(30'000);
       }
     }},
    // A thread of its own copies batches a step ahead, on a stream of its own.
    {"loader", [](Job& j, int steps) {
       std::atomic<bool> over{false};
       std::atomic<int> loaded{0};
       std::thread loads([&] {
         while (!over) {
           if (loaded > j.step + 1) {
             usleep(200);
             continue;
           }
           CHECK(cudaMemcpyAsync(j.data, j.pinned, 1500, cudaMemcpyHostToDevice, j.copies));
           CHECK(cudaStreamSynchronize(j.copies));
           ++loaded;
         }
       });
       for (int i = 0; i < steps; ++i) {
         j.kernels(j.compute, 6, 500);
         j.order(j.compute, j.comm);
         j.reduce(j.comm, 1500);
         j.order(j.comm, j.compute);
         j.kernel(j.compute, 500);
         j.end_step();
       }
       over = true;
       loads.join();
     }},
    // The norm of the gradients is read between the reduction and the optimizer.
    {"clipping", each([](Job& j) {
       j.kernels(j.compute, 6, 500);
       j.order(j.compute, j.comm);
       j.reduce(j.comm, 2000);
       j.kernels(j.compute, 2, 500);
       j.order(j.comm, j.compute);
       j.kernel(j.compute, 100);
       j.reduce(j.compute, 50);
       Job::item(j.compute, j.data);
       j.kernels(j.compute, 4, 200);
     })},
    // The optimizer launches 150 tiny kernels, and parameters are gathered beside them.
    {"tiny_kernels", each([](Job& j) {
       j.kernels(j.compute, 3, 1000);
       j.order(j.compute, j.comm);
       j.gather(j.comm, 4000);
       j.kernels(j.compute, 150, 20);
       j.order(j.comm, j.compute);
       j.kernel(j.compute, 500);
     })},
    // Host functions block the stream that computes, and nothing computes meanwhile.
    {"host_functions", each([](Job& j) {
       j.order(j.compute, j.comm);
       j.gather(j.comm, 6000);
       for (int i = 0; i < 3; ++i) {
         j.kernel(j.compute, 500);
         CHECK(cudaLaunchHostFunc(j.compute, [](void*) { usleep(1500); }, nullptr));
       }
       j.order(j.comm, j.compute);
       j.kernel(j.compute, 500);
     })},
    // Calls are on a stream of higher priority.
    {"priority", [](Job& j, int steps) {
       cudaStream_t first;
       CHECK(cudaStreamCreateWithPriority(&first, cudaStreamNonBlocking, -5));
       for (int i = 0; i < steps; ++i) {
         for (int layer = 0; layer < 4; ++layer) {
           j.order(j.compute, first);
           j.gather(first, 1500);
           cudaEvent_t done = j.record(first);
           j.kernels(j.compute, 2, 500);
           Job::wait(j.compute, done);
           j.kernel(j.compute, 300);
         }
         j.end_step();
       }
     }},
    // Streams come and go, and their addresses are reused by others.
    {"streams_remade", [](Job& j, int steps) {
       for (int i = 0; i < steps; ++i) {
         const cudaStream_t compute = new_stream(), comm = new_stream();
         j.order(compute, comm);
         j.gather(comm, 3000);
         j.kernels(compute, 2, 1000);
         j.order(comm, compute);
         j.kernel(compute, 500);
         j.order(compute, j.compute);
         CHECK(cudaStreamDestroy(compute));
         CHECK(cudaStreamDestroy(comm));
         j.end_step();
       }
     }},
    // Computes on the per-thread default stream, as programs that are compiled for it do.
    {"per_thread", [](Job& j, int steps) {
       std::thread([&] {
         for (int i = 0; i < steps; ++i) {
           j.order(cudaStreamPerThread, j.comm);
           j.gather(j.comm, 3000);
           cudaEvent_t done = j.record(j.comm);
           j.kernels(cudaStreamPerThread, 2, 1000);
           Job::wait(cudaStreamPerThread, done);
           j.kernel(cudaStreamPerThread, 500);
           j.order(cudaStreamPerThread, j.compute);
           j.end_step();
         }
       }).join();
     }},
    // The default stream computes, as in PyTorch.
    {"default_stream", [](Job& j, int steps) {
       for (int i = 0; i < steps; ++i) {
         for (int layer = 0; layer < 3; ++layer) {
           j.order(nullptr, j.comm);
           j.gather(j.comm, 2000);
           cudaEvent_t done = j.record(j.comm);
           j.kernels(nullptr, 2, 700);
           Job::wait(nullptr, done);
           j.kernel(nullptr, 300);
         }
         j.order(nullptr, j.compute);
         j.end_step();
       }
     }},
    // One kernel takes seconds, and calls and copies run under it.
    {"one_long_kernel", [](Job& j, int steps) {
       j.kernel(j.compute, 2'000'000);
       for (int i = 0; i < steps; ++i) {
         j.gather(j.comm, 20'000);
         j.h2d(j.copies, 5'000);
         CHECK(cudaStreamSynchronize(j.copies));
       }
       CHECK(cudaStreamSynchronize(j.comm));
       j.end_step();
     }},
    // Launches thousands of kernels and of calls a second.
    {"short_kernels", each([](Job& j) {
       for (int i = 0; i < 40; ++i) {
         j.order(j.compute, j.comm);
         j.gather(j.comm, 300);
         j.kernels(j.compute, 4, 50);
         j.order(j.comm, j.compute);
         j.kernels(j.compute, 2, 50);
       }
     })},
    // Calls of two communicators run at once.
    {"two_communicators", [](Job& j, int steps) {
       const ncclComm_t other = new_comm();
       for (int i = 0; i < steps; ++i) {
         j.kernels(j.compute, 4, 500);
         j.order(j.compute, j.comm);
         j.order(j.compute, j.side);
         j.reduce(j.comm, 3000);
         j.gather(j.side, 2000, other);
         j.kernels(j.compute, 3, 500);
         j.order(j.side, j.compute);
         j.kernel(j.compute, 500);
         j.order(j.comm, j.compute);
         j.kernel(j.compute, 300);
         j.end_step();
       }
     }},
    // Calls of a group are one piece of work.
    {"grouped", each([](Job& j) {
       j.order(j.compute, j.comm);
       CHECK(ncclGroupStart());
       for (int i = 0; i < 4; ++i) j.gather(j.comm, 1000);
       CHECK(ncclGroupEnd());
       cudaEvent_t done = j.record(j.comm);
       j.kernels(j.compute, 5, 500);
       Job::wait(j.compute, done);
       j.kernel(j.compute, 500);
     })},
    // Another thread checks every 2 ms how far the calls are, as a watchdog does.
    {"watched", [](Job& j, int steps) {
       std::atomic<bool> over{false};
       std::atomic<cudaEvent_t> last{nullptr};
       std::thread watchdog([&] {
         while (!over) {
           if (cudaEvent_t event = last) (void)cudaEventQuery(event);
           usleep(2000);
         }
       });
       for (int i = 0; i < steps; ++i) {
         for (int layer = 0; layer < 3; ++layer) {
           j.order(j.compute, j.comm);
           j.reduce(j.comm, 2000);
           cudaEvent_t done = j.record(j.comm);
           last = done;
           j.kernels(j.compute, 2, 600);
           Job::wait(j.compute, done);
           j.kernel(j.compute, 300);
         }
         j.end_step();
       }
       over = true;
       watchdog.join();
     }},
    // A thread waits for the whole device again and again.
    {"synchronizing_thread", [](Job& j, int steps) {
       std::atomic<bool> over{false};
       std::thread waits([&] {
         while (!over) {
           CHECK(cudaDeviceSynchronize());
           usleep(1000);
         }
       });
       for (int i = 0; i < steps; ++i) {
         for (int layer = 0; layer < 3; ++layer) {
           j.order(j.compute, j.comm);
           j.gather(j.comm, 2000);
           cudaEvent_t done = j.record(j.comm);
           j.kernels(j.compute, 2, 600);
           Job::wait(j.compute, done);
           j.kernel(j.compute, 300);
         }
         j.end_step();
       }
       over = true;
       waits.join();
     }},
    // Uses the other two ways to launch a kernel.
    {"other_launches", each([](Job& j) {
       const auto* body = reinterpret_cast<const void*>(&kernel_body);
       j.order(j.compute, j.comm);
       j.gather(j.comm, 4000);
       cudaLaunchConfig_t config{};
       config.gridDim = dim3{1500, 1, 1};
       config.blockDim = dim3{1, 1, 1};
       config.stream = j.compute;
       CHECK(cudaLaunchKernelExC(&config, body, nullptr));
       CHECK(cudaLaunchCooperativeKernel(body, dim3{1500, 1, 1}, dim3{1, 1, 1}, nullptr, 0,
                                         j.compute));
       j.order(j.comm, j.compute);
       CHECK(cudaLaunchKernelExC(&config, body, nullptr));
     })},
    // Launches kernels through the driver, as run-time compilers do.
    {"driver_launches",
     [](Job& j, int steps) {
       using Launch =
           CUresult (*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, CUstream, void**, void**);
       using LaunchEx = CUresult (*)(const CUlaunchConfig*, CUfunction, void**, void**);
       void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
       const auto launch = reinterpret_cast<Launch>(dlsym(driver, "cuLaunchKernel"));
       const auto launch_ex = reinterpret_cast<LaunchEx>(dlsym(driver, "cuLaunchKernelEx"));
       for (int i = 0; i < steps; ++i) {
         j.order(j.compute, j.comm);
         j.gather(j.comm, 4000);
         CHECK(launch(nullptr, 1500, 1, 1, 1, 1, 1, 0, j.compute, nullptr, nullptr));
         CUlaunchConfig config{};
         config.gridDimX = 1500;
         config.gridDimY = config.gridDimZ = 1;
         config.hStream = j.compute;
         CHECK(launch_ex(&config, nullptr, nullptr, nullptr));
         j.order(j.comm, j.compute);
         CHECK(launch(nullptr, 500, 1, 1, 1, 1, 1, 0, j.compute, nullptr, nullptr));
         j.end_step();
       }
     }},
    // There is a copy between the calls of a group, as in c10d's scatter.
    {"copy_in_group", each([](Job& j) {
       j.kernels(j.compute, 2, 500);
       j.order(j.compute, j.comm);
       CHECK(ncclGroupStart());
       CHECK(ncclSend(j.data, 700, ncclInt8, 0, j.world, j.comm));
       CHECK(ncclRecv(j.more, 700, ncclInt8, 0, j.world, j.comm));
       j.d2d(j.comm, 400);
       CHECK(ncclGroupEnd());
       j.kernel(j.compute, 500);
       j.order(j.comm, j.compute);
       j.reduce(j.compute, 500);
     })},
    // Calls on the default stream hold up a blocking stream's kernels, without an explicit wait.
    {"implicit_order",
     [](Job& j, int steps) {
       cudaStream_t blocking;
       CHECK(cudaStreamCreate(&blocking));
       for (int i = 0; i < steps; ++i) {
         for (int layer = 0; layer < 3; ++layer) {
           j.kernels(blocking, 2, 700);
           j.gather(nullptr, 1500);
         }
         j.order(nullptr, j.compute);
         j.end_step();
       }
     }},
    // Events are recorded and waited for through the driver's functions.
    {"driver_waits",
     [](Job& j, int steps) {
       void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
       const auto record = reinterpret_cast<CUresult (*)(CUevent, CUstream)>(
           dlsym(driver, "cuEventRecord"));
       const auto wait = reinterpret_cast<CUresult (*)(CUstream, CUevent, unsigned)>(
           dlsym(driver, "cuStreamWaitEvent"));
       for (int i = 0; i < steps; ++i) {
         for (int layer = 0; layer < 3; ++layer) {
           cudaEvent_t computed = j.events[0], gathered = j.events[1];
           CHECK(record(computed, j.compute));
           CHECK(wait(j.comm, computed, 0));
           j.gather(j.comm, 3000);
           CHECK(record(gathered, j.comm));
           j.kernels(j.compute, 2, 700);
           CHECK(wait(j.compute, gathered, 0));
           j.kernels(j.compute, 2, 500);
         }
         j.end_step();
       }
     }},
    // Two streams compute in turns, and each waits for the other.
    {"ping_pong", each([](Job& j) {
       j.order(j.compute, j.comm);
       j.reduce(j.comm, 6000);
       cudaEvent_t reduced = j.record(j.comm);
       for (int i = 0; i < 4; ++i) {
         j.kernel(j.compute, 500);
         j.order(j.compute, j.side);
         j.kernel(j.side, 500);
         j.order(j.side, j.compute);
       }
       Job::wait(j.compute, reduced);
       j.kernel(j.compute, 1000);
     })},
    // Many streams compute, each of them a little.
    {"many_streams",
     [](Job& j, int steps) {
       std::vector<cudaStream_t> streams(48);
       for (auto& stream : streams) stream = new_stream();
       for (int i = 0; i < steps; ++i) {
         j.order(j.compute, j.comm);
         j.gather(j.comm, 5000);
         for (size_t k = 0; k < streams.size(); k += 6) {
           const cudaStream_t stream = streams[(k + static_cast<size_t>(i)) % streams.size()];
           j.order(j.compute, stream);
           j.kernel(stream, 300);
           j.order(stream, j.compute);
           j.kernel(j.compute, 100);
         }
         j.order(j.comm, j.compute);
         j.kernel(j.compute, 800);
         j.end_step();
       }
     }},
    // A second stream computes in only one of ten steps.
    {"rare_second_stream", [](Job& j, int steps) {
       for (int i = 0; i < steps; ++i) {
         j.order(j.compute, j.comm);
         j.gather(j.comm, 3000);
         j.kernel(j.compute, 1000);
         if (i % 10 == 9) j.kernel(j.side, 4000);
         j.order(j.comm, j.compute);
         j.kernel(j.compute, 1000);
         j.end_step();
       }
     }},
    // Computation moves to another stream in the middle of the run.
    {"moves", [](Job& j, int steps) {
       for (int i = 0; i < steps; ++i) {
         const cudaStream_t compute = i < steps / 2 ? j.compute : j.side;
         j.order(compute, j.comm);
         j.gather(j.comm, 3000);
         cudaEvent_t done = j.record(j.comm);
         j.kernels(compute, 2, 1000);
         Job::wait(compute, done);
         j.kernel(compute, 1000);
         if (compute != j.compute) j.order(compute, j.compute);
         j.end_step();
       }
     }},
    // The stream of the calls also computes a little, before and after each.
    {"work_beside_calls", each([](Job& j) {
       for (int layer = 0; layer < 3; ++layer) {
         j.order(j.compute, j.comm);
         j.kernel(j.comm, 200);
         j.gather(j.comm, 2000);
         j.kernel(j.comm, 200);
         cudaEvent_t done = j.record(j.comm);
         j.kernels(j.compute, 2, 700);
         Job::wait(j.compute, done);
         j.kernel(j.compute, 500);
       }
     })},
    // The host queues much, and in every other step is then away for as long as the device needs.
    {"queued_and_away", [](Job& j, int steps) {
       for (int i = 0; i < steps; ++i) {
         j.order(j.compute, j.comm);
         j.gather(j.comm, 6000);
         cudaEvent_t done = j.record(j.comm);
         j.kernels(j.compute, 4, 1000);
         Job::wait(j.compute, done);
         j.kernels(j.compute, 4, 1000);
         usleep(i % 2 == 0 ? 0 : 22'000);
         j.end_step();
       }
     }},
    // Nothing computes while parameters are broadcast before the training and gathered after it.
    {"before_and_behind", [](Job& j, int steps) {
       for (int i = 0; i < 10; ++i) {
         CHECK(ncclBroadcast(j.data, j.more, 1500, ncclInt8, 0, j.world, j.comm));
       }
       CHECK(cudaDeviceSynchronize());
       for (int i = 0; i < steps; ++i) {
         j.kernels(j.compute, 4, 500);
         j.order(j.compute, j.comm);
         j.reduce(j.comm, 1500);
         cudaEvent_t done = j.record(j.comm);
         j.kernels(j.compute, 2, 500);
         Job::wait(j.compute, done);
         j.kernel(j.compute, 300);
         j.end_step();
       }
       for (int i = 0; i < 10; ++i) j.gather(j.comm, 1500);
       CHECK(cudaDeviceSynchronize());
     }},
    // Several waits follow each other on a stream with no kernel between them.
    {"waits_in_a_row", each([](Job& j) {
       for (int layer = 0; layer < 3; ++layer) {
         j.order(j.compute, j.comm);
         for (int i = 0; i < 3; ++i) {
           j.gather(j.comm, 700);
           j.order(j.comm, j.compute);
         }
         j.order(j.side, j.compute);
         j.order(j.copies, j.compute);
         j.kernels(j.compute, 2, 500);
       }
     })},
    // A step has only one kernel.
    {"one_kernel_a_step", each([](Job& j) {
       j.order(j.compute, j.comm);
       j.gather(j.comm, 5000);
       j.kernel(j.compute, 2000);
       j.order(j.comm, j.compute);
       usleep(8000);
     })},
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
