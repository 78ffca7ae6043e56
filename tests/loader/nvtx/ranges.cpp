// A program with NVTX ranges of every kind, around calls of NCCL and CUDA.
//
//   nvtx_ranges SCENARIO
//
// Prints what it did as JSON lines, {"name": ..., "domain": ..., "kind": ..., "thread": n}, by its
// own count: the other side of the tests.
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

char g_bytes[64];

// What begins a session.
void copy() {
  static void* device = nullptr;
  if (device == nullptr) cudaMalloc(&device, sizeof g_bytes);
  cudaMemcpy(device, g_bytes, sizeof g_bytes, cudaMemcpyHostToDevice);
}

struct Event : nvtxEventAttributes_t {
  explicit Event(const char* text) : nvtxEventAttributes_t{} {
    version = NVTX_VERSION;
    size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    messageType = NVTX_MESSAGE_TYPE_ASCII;
    message.ascii = text;
  }
  explicit Event(nvtxStringHandle_t text) : Event("") {
    messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    message.registered = text;
  }
};

void nested() {
  copy();
  nvtxRangePushA("outer");
  for (int i = 0; i < 3; ++i) {
    nvtxRangePushA(("inner " + std::to_string(i)).c_str());
    copy();
    nvtxRangePop();
  }
  nvtxRangePop();
}

struct Scenario {
  const char* name;
  void (*run)();
};
constexpr Scenario kScenarios[] = {{"nested", nested}};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (const Scenario& scenario : kScenarios) {
    if (std::strcmp(scenario.name, argv[1]) != 0) continue;
    scenario.run();
    return 0;
  }
  return 2;
}
