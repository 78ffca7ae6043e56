// Shapes that differ in how much of a call computation hides, and in how it is waited for.
#include <unistd.h>

#include "job.h"

Shapes overlap() {
  return {
      // Computation hides 5 of each all-gather's 8 ms, and the other 3 are waited for.
      {"partly_hidden", each([](Job& j) {
         for (int i = 0; i < 3; ++i) j.layer([&] { j.gather(j.comm, 8000); }, 5, 1000, 500);
       })},
      // Reduce-scatters have finished when somebody comes to wait for them.
      {"in_time", each([](Job& j) {
         for (int i = 0; i < 3; ++i) j.layer([&] { j.scatter(j.comm, 3000); }, 5, 1000, 500);
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
         OK(cudaDeviceSynchronize());
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
         OK(cudaEventSynchronize(copied));
         Job::wait(j.compute, reduced);
         j.kernel(j.compute, 1000);
       })},
      // The host is far ahead: nothing is read back before hundreds of calls are queued.
      {"queued_ahead",
       [](Job& j, int steps) {
         for (int i = 0; i < 3 * 40 * steps; ++i)
           j.layer([&] { j.gather(j.comm, 500); }, 1, 475, 25);
         j.end_step();
       }},
      // The optimizer launches 150 tiny kernels, and parameters are gathered beside them.
      {"tiny_kernels", each([](Job& j) {
         j.kernels(j.compute, 3, 1000);
         j.order(j.compute, j.comm);
         j.gather(j.comm, 4000);
         j.kernels(j.compute, 150, 20);
         j.order(j.comm, j.compute);
         j.kernel(j.compute, 500);
       })},
      // One kernel takes seconds, and calls and copies run under it.
      {"one_long_kernel",
       [](Job& j, int steps) {
         j.kernel(j.compute, 2'000'000);
         for (int i = 0; i < steps; ++i) {
           j.gather(j.comm, 20'000);
           j.h2d(j.copies, 5'000);
           OK(cudaStreamSynchronize(j.copies));
         }
         OK(cudaStreamSynchronize(j.comm));
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
      // Calls of a group are one piece of work.
      {"grouped", each([](Job& j) {
         const auto group = [&] {
           OK(ncclGroupStart());
           for (int i = 0; i < 4; ++i) j.gather(j.comm, 1000);
           OK(ncclGroupEnd());
         };
         j.layer(group, 5, 500, 500);
       })},
      // Calls of two communicators run at once.
      {"two_communicators",
       [](Job& j, int steps) {
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
      // There is a copy between the calls of a group, as in c10d's scatter.
      {"copy_in_group", each([](Job& j) {
         j.kernels(j.compute, 2, 500);
         j.order(j.compute, j.comm);
         OK(ncclGroupStart());
         OK(ncclSend(j.data, 700, ncclInt8, 0, j.world, j.comm));
         OK(ncclRecv(j.more, 700, ncclInt8, 0, j.world, j.comm));
         j.d2d(j.comm, 400);
         OK(ncclGroupEnd());
         j.kernel(j.compute, 500);
         j.order(j.comm, j.compute);
         j.reduce(j.compute, 500);
       })},
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
      // Nothing computes while parameters are broadcast before the training and gathered after it.
      {"before_and_behind",
       [](Job& j, int steps) {
         for (int i = 0; i < 10; ++i) {
           OK(ncclBroadcast(j.data, j.more, 1500, ncclInt8, 0, j.world, j.comm));
         }
         OK(cudaDeviceSynchronize());
         for (int i = 0; i < steps; ++i) {
           j.kernels(j.compute, 4, 500);
           j.layer([&] { j.reduce(j.comm, 1500); }, 2, 500, 300);
           j.end_step();
         }
         for (int i = 0; i < 10; ++i) j.gather(j.comm, 1500);
         OK(cudaDeviceSynchronize());
       }},
  };
}
