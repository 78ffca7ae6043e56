// Shapes that differ in which streams and devices compute.
#include <thread>
#include <vector>

#include "job.h"

Shapes streams() {
  return {
      // One stream is busy for long and never used again; then training runs on another.
      {"other_stream_first",
       [](Job& j, int steps) {
         j.kernels(j.side, 200, 10'000);
         OK(cudaStreamSynchronize(j.side));
         for (int i = 0; i < steps; ++i) {
           j.layer([&] { j.gather(j.comm, 6200); }, 1, 2000, 3000);
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
      // Two devices of one process: computation on one hides nothing on the other.
      {"two_devices",
       [](Job& j, int steps) {
         OK(cudaSetDevice(1));
         const cudaStream_t compute = new_stream(), comm = new_stream();
         const ncclComm_t world = new_comm();
         for (int i = 0; i < steps; ++i) {
           OK(cudaSetDevice(1));
           OK(ncclAllReduce(j.data, j.more, 3000, ncclInt8, ncclSum, world, comm));
           j.kernel(compute, 500);
           OK(cudaSetDevice(0));
           j.gather(j.comm, 3000);
           j.kernels(j.compute, 4, 1000);
           j.order(j.comm, j.compute);
           j.end_step();
           OK(cudaSetDevice(1));
           OK(cudaStreamSynchronize(comm));
           OK(cudaStreamSynchronize(compute));
           OK(cudaSetDevice(0));
         }
       }},
      // Streams come and go, and their addresses are reused by others.
      {"streams_remade",
       [](Job& j, int steps) {
         for (int i = 0; i < steps; ++i) {
           const cudaStream_t compute = new_stream(), comm = new_stream();
           j.order(compute, comm);
           j.gather(comm, 3000);
           j.kernels(compute, 2, 1000);
           j.order(comm, compute);
           j.kernel(compute, 500);
           j.order(compute, j.compute);
           OK(cudaStreamDestroy(compute));
           OK(cudaStreamDestroy(comm));
           j.end_step();
         }
       }},
      // Computes on the per-thread default stream, as programs that are compiled for it do.
      {"per_thread",
       [](Job& j, int steps) {
         std::thread([&] {
           for (int i = 0; i < steps; ++i) {
             j.layer([&] { j.gather(j.comm, 3000); }, 2, 1000, 500, cudaStreamPerThread);
             j.order(cudaStreamPerThread, j.compute);
             j.end_step();
           }
         }).join();
       }},
      // The default stream computes, as in PyTorch.
      {"default_stream", each([](Job& j) {
         for (int i = 0; i < 3; ++i) j.layer([&] { j.gather(j.comm, 2000); }, 2, 700, 300, nullptr);
         j.order(nullptr, j.compute);
       })},
      // Calls on the default stream hold up a blocking stream's kernels, without an explicit wait.
      {"implicit_order",
       [](Job& j, int steps) {
         cudaStream_t blocking;
         OK(cudaStreamCreate(&blocking));
         for (int i = 0; i < steps; ++i) {
           for (int layer = 0; layer < 3; ++layer) {
             j.kernels(blocking, 2, 700);
             j.gather(nullptr, 1500);
           }
           j.order(nullptr, j.compute);
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
      {"rare_second_stream",
       [](Job& j, int steps) {
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
      {"moves",
       [](Job& j, int steps) {
         for (int i = 0; i < steps; ++i) {
           const cudaStream_t compute = i < steps / 2 ? j.compute : j.side;
           j.layer([&] { j.gather(j.comm, 3000); }, 2, 1000, 1000, compute);
           if (compute != j.compute) j.order(compute, j.compute);
           j.end_step();
         }
       }},
  };
}
