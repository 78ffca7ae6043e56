// Hosts that are late, away or busy with other threads.
#include <unistd.h>
#include <atomic>

#include "job.h"

Shapes hosts() {
  return {
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
      // A thread writes a checkpoint: it waits for its own copies only. The job ends when some are
      // written,
      // though its own steps may all be queued before the first.
      {"checkpoint_thread",
       [](Job& j, int steps) {
         const cudaStream_t mine = new_stream();
         std::atomic<int> written{0};
         const Beside saves([&] {
           OK(cudaMemcpyAsync(j.pinned + 1000, j.data, 3000, cudaMemcpyDeviceToHost, mine));
           OK(cudaStreamSynchronize(mine));
           ++written;
           usleep(3000);
         });
         for (int i = 0; i < steps; ++i) {
           j.kernels(j.compute, 8, 1000);
           j.layer([&] { j.reduce(j.comm, 2000); }, 3, 1000, 1000);
           j.end_step();
         }
         while (written < 8) usleep(500);
       }},
      // One thread computes, another communicates, and they know nothing of each other.
      {"two_threads",
       [](Job& j, int steps) {
         const Beside communicates([&] {
           j.reduce(j.comm, 2000);
           OK(cudaStreamSynchronize(j.comm));
           usleep(500);
         });
         for (int i = 0; i < steps; ++i) {
           j.kernels(j.compute, 10, 500);
           j.end_step();
           usleep(1000);
         }
       }},
      // A thread of its own copies batches a step ahead, on a stream of its own.
      {"loader",
       [](Job& j, int steps) {
         std::atomic<int> loaded{0};
         const Beside loads([&] {
           if (loaded > j.step + 1) {
             usleep(200);
             return;
           }
           OK(cudaMemcpyAsync(j.data, j.pinned, 1500, cudaMemcpyHostToDevice, j.copies));
           OK(cudaStreamSynchronize(j.copies));
           ++loaded;
         });
         for (int i = 0; i < steps; ++i) {
           j.kernels(j.compute, 6, 500);
           j.order(j.compute, j.comm);
           j.reduce(j.comm, 1500);
           j.order(j.comm, j.compute);
           j.kernel(j.compute, 500);
           j.end_step();
         }
       }},
      // Another thread checks every 2 ms how far the calls are, as a watchdog does.
      {"watched",
       [](Job& j, int steps) {
         std::atomic<cudaEvent_t> last{nullptr};
         const Beside watchdog([&] {
           if (cudaEvent_t event = last) (void)cudaEventQuery(event);
           usleep(2000);
         });
         for (int i = 0; i < steps; ++i) {
           for (int layer = 0; layer < 3; ++layer) {
             last = j.layer([&] { j.reduce(j.comm, 2000); }, 2, 600, 300);
           }
           j.end_step();
         }
       }},
      // A thread waits for the whole device again and again.
      {"synchronizing_thread",
       [](Job& j, int steps) {
         const Beside waits([&] {
           OK(cudaDeviceSynchronize());
           usleep(1000);
         });
         for (int i = 0; i < steps; ++i) {
           for (int layer = 0; layer < 3; ++layer) {
             j.layer([&] { j.gather(j.comm, 2000); }, 2, 600, 300);
           }
           j.end_step();
         }
       }},
      // Host functions block the stream that computes, and nothing computes meanwhile.
      {"host_functions", each([](Job& j) {
         j.order(j.compute, j.comm);
         j.gather(j.comm, 6000);
         for (int i = 0; i < 3; ++i) {
           j.kernel(j.compute, 500);
           OK(cudaLaunchHostFunc(
               j.compute, [](void*) { usleep(1500); }, nullptr));
         }
         j.order(j.comm, j.compute);
         j.kernel(j.compute, 500);
       })},
      // The host queues much, and in every other step is then away for as long as the device needs.
      {"queued_and_away",
       [](Job& j, int steps) {
         for (int i = 0; i < steps; ++i) {
           j.layer([&] { j.gather(j.comm, 6000); }, 4, 1000, 1000);
           j.kernels(j.compute, 3, 1000);
           usleep(i % 2 == 0 ? 0 : 22'000);
           j.end_step();
         }
       }},
  };
}
