// Measures the hooks that are off by default (TPROF_DRIVER, TPROF_DLSYM, NVTX), next to the floor
// and to the same call without tprof. All calls go to null libraries.
//
//   bench_opt_in REPETITIONS [captures]
//
// captures: a capture begins and ends before all else.
// Prints JSON: {variant: [CPU nanoseconds per call, one figure per repetition]}. Two rounds before
// these warm up and are not reported.
#include <cuda.h>
#include <execinfo.h>
#include <nvtx3/nvToolsExt.h>

#include <functional>
#include <string_view>
#include <vector>

#include "interpose/user/tprof.h"
#include "ring_watch.h"
#include "variants.h"

namespace {

using namespace tprof::bench;

constexpr std::uint64_t kCalls = 8192;  // half a ring

#if defined(__x86_64__)
constexpr const char* kOldestGlibc = "GLIBC_2.2.5";
#else
constexpr const char* kOldestGlibc = "GLIBC_2.17";
#endif

using Wait = cudaError_t (*)(cudaStream_t, cudaEvent_t, unsigned);
using Launch = cudaError_t (*)(const void*, dim3, dim3, void**, std::size_t, cudaStream_t);
using Copy = decltype(&::cuMemcpyHtoDAsync_v2);
using Malloc = cudaError_t (*)(void**, std::size_t);
using Free = cudaError_t (*)(void*);
using Dlsym = void* (*)(void*, const char*);

template <typename F>
F taken(void* library, const char* name) {
  return reinterpret_cast<F>(dlsym(library, name));
}

Copy by_name() {
  void* found = nullptr;
  if (cuGetProcAddress_v2("cuMemcpyHtoDAsync", &found, 3020, 0, nullptr) != CUDA_SUCCESS) {
    std::exit(1);
  }
  return reinterpret_cast<Copy>(found);
}

// Makes ranges as NCCL does around every call. The name is of a call that moves no data, since one
// that moves data would be taken for a call that bypassed us, and be counted.
void nccl_ranges() {
  static nvtxDomainRegistration_st* const domain = nvtxDomainCreateA("NCCL");
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(domain, "ncclCommCount");
  for (std::uint64_t i = 0; i < kCalls; ++i) {
    nvtxDomainRangePushEx(domain, &event);
    nvtxDomainRangePop(domain);
  }
}

// Makes ranges as PyTorch and its users do. There are few enough to leave half of the ring free, so
// that each is recorded.
constexpr std::uint64_t kRanges = kCalls - 64;
void ranges() {
  for (std::uint64_t i = 0; i < kRanges; ++i) {
    nvtxRangePushA("layers.17.attention");
    nvtxRangePop();
  }
}

// Makes the same ranges with tprof's API for programs.
void scopes() {
  for (std::uint64_t i = 0; i < kRanges; ++i) {
    tprof_push("layers.17.attention");
    tprof_pop(nullptr);
  }
}

// Makes the calls from below more frames than a walk covers.
constexpr int kFrames = 24;  // interpose/format/sites.h
[[gnu::noinline]] void deep(int frames, const std::function<void()>& calls) {
  if (frames == 0) {
    calls();
  } else {
    deep(frames - 1, calls);
  }
  asm volatile("");  // code after the call prevents a tail call
}

// Walks the same frames with glibc's backtrace().
void backtraces() {
  void* to[kFrames];
  for (std::uint64_t i = 0; i < kCalls; ++i) asm volatile("" ::"r"(backtrace(to, kFrames)));
}

struct Measured {
  const char* name;
  std::function<void()> calls;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::size_t repetitions = std::strtoull(argv[1], nullptr, 10);
  if (argc > 2) {
    CUgraph graph = nullptr;
    CUstream stream = nullptr;
    if (cuStreamCreate(&stream, 0) != CUDA_SUCCESS ||
        cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) != CUDA_SUCCESS ||
        cuStreamEndCapture(stream, &graph) != CUDA_SUCCESS) {
      return 1;
    }
  }
  Caller caller(new_communicator());
  void* nccl = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  void* libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  const auto gather = taken<decltype(&::ncclAllGather)>(nccl, "ncclAllGather");
  const auto bare_copy = taken<Copy>(driver, "bare_copy");
  const auto linked = taken<Copy>(RTLD_DEFAULT, "cuMemcpyHtoDAsync_v2");
  const Copy given = by_name();
  const Dlsym ours = &dlsym;
  void* cudart = dlopen("libcudart.so.13", RTLD_LAZY | RTLD_NOLOAD);
  const auto bare_wait = taken<Wait>(cudart, "cudaStreamWaitEvent");
  const auto bare_launch = taken<Launch>(cudart, "cudaLaunchKernel");
  const auto bare_malloc = taken<Malloc>(cudart, "cudaMalloc");
  const auto bare_free = taken<Free>(cudart, "cudaFree");
  const auto real = reinterpret_cast<Dlsym>(dlvsym(libc, "dlsym", kOldestGlibc));
  if (gather == nullptr || bare_copy == nullptr || linked == nullptr || real == nullptr ||
      bare_wait == nullptr || bare_launch == nullptr || bare_malloc == nullptr ||
      bare_free == nullptr) {
    return 1;
  }

  char bytes[64] = {};
  ncclComm_t comm = new_communicator();
  const auto copies = [&](Copy copy) {
    return [&bytes, copy] {
      for (std::uint64_t i = 0; i < kCalls; ++i) copy(0, bytes, sizeof bytes, nullptr);
    };
  };
  const auto waits = [](Wait wait) {
    return [wait] {
      for (std::uint64_t i = 0; i < kCalls; ++i) wait(nullptr, nullptr, 0);
    };
  };
  // Launches a kernel each time, on a stream that does nothing else.
  const auto launches = [](Launch launch) {
    return [launch] {
      for (std::uint64_t i = 0; i < kCalls; ++i) launch(nullptr, {}, {}, nullptr, 0, nullptr);
    };
  };
  const auto allocations = [](Malloc allocate, Free release) {
    return [allocate, release] {
      void* memory = nullptr;
      for (std::uint64_t i = 0; i < kCalls; ++i) {
        allocate(&memory, 64);
        release(memory);
      }
    };
  };
  const auto lookups = [&](Dlsym look, const char* name) {
    return [look, libc, name] {
      for (std::uint64_t i = 0; i < kCalls; ++i) {
        asm volatile("" ::"r"(look(libc, name)));
      }
    };
  };
  const Measured all[] = {
      {"floor", [&] { caller.calls(Variant::floor, kCalls); }},
      {"ncclAllGather by pointer",
       [&] {
         for (std::uint64_t i = 0; i < kCalls; ++i) {
           gather(bytes, bytes, 16, ncclInt8, comm, nullptr);
         }
       }},
      {"ncclAllGather, 24 frames deep",
       [&] { deep(kFrames, [&] { caller.calls(Variant::all_gather, kCalls); }); }},
      {"backtrace() of 24 frames", [] { deep(kFrames, backtraces); }},
      {"bare cudaStreamWaitEvent", waits(bare_wait)},
      {"cudaStreamWaitEvent", waits(&cudaStreamWaitEvent)},
      {"bare cudaLaunchKernel", launches(bare_launch)},
      {"cudaLaunchKernel", launches(&cudaLaunchKernel)},
      {"bare cudaMalloc and cudaFree", allocations(bare_malloc, bare_free)},
      {"cudaMalloc and cudaFree", allocations(&cudaMalloc, &cudaFree)},
      {"bare driver copy", copies(bare_copy)},
      {"driver copy, linked", copies(linked)},
      {"driver copy, by pointer", copies(given)},
      {"bare dlsym", lookups(real, "strlen")},
      {"dlsym", lookups(ours, "strlen")},
      {"NVTX range of NCCL's", nccl_ranges},
      {"NVTX range", ranges},
      {"scope", scopes},
  };
  constexpr std::size_t kMeasured = std::size(all);
  std::vector<double> ns[kMeasured];
  RingWatch watch;
  caller.calls(Variant::all_gather, 1);
  watch.open();
  constexpr std::size_t kWarm = 2;
  for (std::size_t r = 0; r < repetitions + kWarm; ++r) {
    for (std::size_t v = 0; v < kMeasured; ++v) {
      const Measured& m = all[(v + r) % kMeasured];
      watch.wait_until_drained();
      const std::uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
      m.calls();
      const std::uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID);
      if (r >= kWarm) {
        ns[&m - all].push_back(static_cast<double>(end - start) / static_cast<double>(kCalls));
      }
    }
  }
  for (std::size_t v = 0; v < kMeasured; ++v) {
    std::printf("%s\"%s\":[", v == 0 ? "{" : "],\n", all[v].name);
    for (std::size_t r = 0; r < repetitions; ++r) {
      std::printf("%s%.2f", r == 0 ? "" : ",", ns[v][r]);
    }
  }
  std::printf("]}\n");
}
