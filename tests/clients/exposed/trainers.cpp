// Shapes of what kinds of training put on the device.
#include <unistd.h>
#include <vector>

#include "job.h"

Shapes trainers() {
  return {
      // DDP copies a batch in, runs forward, backward beside bucketed all-reduces, and the
      // optimizer.
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
      // FSDP2 of PyTorch 2.8 and later: reduce-scatters have a stream of their own, but use the
      // communicator of the all-gathers. NCCL therefore makes all-gathers wait for them. Light
      // kernels prepare both.
      {"fsdp2",
       [](Job& j, int steps) {
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
      // ZeRO-3 fetches parameters of the next layers ahead, and reduces gradients on the same
      // stream.
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
           OK(ncclGroupStart());
           OK(ncclSend(j.data, 700, ncclInt8, 0, j.world, j.comm));
           OK(ncclRecv(j.more, 700, ncclInt8, 0, j.world, j.comm));
           OK(ncclGroupEnd());
           j.order(j.comm, j.compute);
           j.kernels(j.compute, 2, 600);
         }
         j.order(j.compute, j.comm);
         j.reduce(j.comm, 2000);
         j.order(j.comm, j.compute);
         j.kernel(j.compute, 500);
       })},
      // Tokens go to the experts and come back; a shared expert computes meanwhile.
      {"experts",
       [](Job& j, int steps) {
         const ncclComm_t experts = new_comm();
         for (int i = 0; i < steps; ++i) {
           for (int layer = 0; layer < 4; ++layer) {
             j.kernel(j.compute, 400);
             j.order(j.compute, j.comm);
             OK(ncclAlltoAll(j.data, j.more, 1000, ncclInt8, experts, j.comm));
             cudaEvent_t there = j.record(j.comm);
             j.kernel(j.compute, 600);
             Job::wait(j.compute, there);
             j.kernel(j.compute, 800);
             OK(ncclAlltoAll(j.data, j.more, 1000, ncclInt8, experts, j.compute));
           }
           j.order(j.compute, j.comm);
           j.reduce(j.comm, 3000);
           j.order(j.comm, j.compute);
           j.kernel(j.compute, 500);
           j.end_step();
         }
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
      // After every fifth training step come a pause and a step without collectives.
      {"evaluation",
       [](Job& j, int steps) {
         for (int i = 0; i < steps; ++i) {
           j.kernels(j.compute, 4, 500);
           j.layer([&] { j.reduce(j.comm, 1500); }, 2, 500, 300);
           j.end_step();
           if (i % 5 != 4) continue;
           OK(cudaDeviceSynchronize());
           usleep(100'000);
           j.kernels(j.compute, 40, 500);
           Job::item(j.compute, j.data);
           usleep(30'000);
         }
       }},
      // The computation is a graph that is replayed, and the calls are outside it.
      {"graphs",
       [](Job& j, int steps) {
         cudaGraph_t graph;
         cudaGraphExec_t executable;
         OK(cudaStreamBeginCapture(j.compute, cudaStreamCaptureModeThreadLocal));
         j.kernels(j.compute, 5, 600);
         OK(cudaStreamEndCapture(j.compute, &graph));
         OK(cudaGraphInstantiate(&executable, graph, 0));
         for (int i = 0; i < steps; ++i) {
           for (int layer = 0; layer < 3; ++layer) {
             j.order(j.compute, j.comm);
             j.gather(j.comm, 4000);
             cudaEvent_t done = j.record(j.comm);
             OK(cudaGraphLaunch(executable, j.compute));
             Job::wait(j.compute, done);
           }
           j.end_step();
         }
       }},
      // The graph contains a call of its own, and another call runs beside it.
      {"graphs_with_calls",
       [](Job& j, int steps) {
         const ncclComm_t other = new_comm();
         cudaGraph_t graph;
         cudaGraphExec_t executable;
         OK(cudaStreamBeginCapture(j.compute, cudaStreamCaptureModeThreadLocal));
         j.kernels(j.compute, 2, 600);
         j.reduce(j.compute, 1500);
         j.kernel(j.compute, 300);
         OK(cudaStreamEndCapture(j.compute, &graph));
         OK(cudaGraphInstantiate(&executable, graph, 0));
         for (int i = 0; i < steps; ++i) {
           j.order(j.compute, j.comm);
           OK(cudaGraphLaunch(executable, j.compute));
           j.gather(j.comm, 5000, other);
           j.order(j.comm, j.compute);
           j.kernel(j.compute, 800);
           j.end_step();
         }
       }},
  };
}
