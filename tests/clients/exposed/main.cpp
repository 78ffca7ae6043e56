// Makes steps of training as frameworks put them on the device. They differ in what is hidden
// behind computation, and look alike to the host.
//
//   exposed SHAPE ENDING [STEPS]
//
// ENDING is how a step ends for the host (kEndings below). With STANDIN_BLOCK_US=1 and
// STANDIN_GBPS=0.001 each piece of work takes as long as the program says: a kernel takes 1 us for
// each block, a call or copy 1 us for each byte. Without arguments it prints all shapes' names.
#include <unistd.h>

#include <utility>

#include "job.h"

namespace {

const std::map<std::string, std::function<void(Job&)>> kEndings = {
    {"nothing", [](Job&) {}},
    {"item", [](Job& j) { Job::item(j.compute, j.data); }},
    {"stream_synchronize", [](Job& j) { OK(cudaStreamSynchronize(j.compute)); }},
    {"device_synchronize", [](Job&) { OK(cudaDeviceSynchronize()); }},
    {"event_synchronize", [](Job& j) { OK(cudaEventSynchronize(j.record(j.compute))); }},
    // The host polls now and then, like a program that has other things to do.
    {"polled",
     [](Job& j) {
       cudaEvent_t event = j.record(j.compute);
       while (cudaEventQuery(event) == cudaErrorNotReady) usleep(500);
     }},
    // The host waits for nothing, and comes back when the device has long been idle.
    {"idle_host", [](Job&) { usleep(40'000); }},
};

}  // namespace

void kernel_body() {}

Job::Job(std::string how_a_step_ends) : ending(std::move(how_a_step_ends)), events(512) {
  OK(cudaMalloc(reinterpret_cast<void**>(&data), kBytes));
  OK(cudaMalloc(reinterpret_cast<void**>(&more), kBytes));
  OK(cudaMallocHost(reinterpret_cast<void**>(&pinned), kBytes));
  for (auto& event : events) OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
}

void Job::end_step() {
  kEndings.at(ending)(*this);
  ++step;
}

int main(int argc, char** argv) {
  Shapes shapes;
  for (Shapes more : {overlap(), trainers(), hosts(), streams(), functions()}) shapes.merge(more);
  if (argc < 3 || !shapes.contains(argv[1]) || !kEndings.contains(argv[2])) {
    for (const auto& [name, run] : shapes) std::puts(name.c_str());
    return argc > 1;
  }
  Job job(argv[2]);
  shapes.at(argv[1])(job, argc > 3 ? std::atoi(argv[3]) : 20);
  OK(cudaDeviceSynchronize());
  OK(ncclCommDestroy(job.world));
  return 0;
}
