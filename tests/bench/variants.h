// The calls that are compared. All are made in the same way, through a pointer that is opaque to
// the compiler.
#pragma once

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>

namespace tprof::bench {

inline std::uint64_t clock_ns(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

enum class Variant {
  floor,            // the least that recording needs: two clock reads, 64 bytes into a ring
  bare_all_gather,  // the null library's function
  all_gather,       // the function that a program calls: the preload's if it is loaded
  bare_memcpy,
  memcpy,
};
inline constexpr const char* kVariantNames[] = {"floor", "bare ncclAllGather", "ncclAllGather",
                                                "bare cudaMemcpyAsync", "cudaMemcpyAsync"};
inline constexpr Variant kVariants[] = {Variant::floor, Variant::bare_all_gather,
                                        Variant::all_gather, Variant::bare_memcpy, Variant::memcpy};

struct Functions {
  decltype(&::ncclAllGather) all_gather;
  decltype(&::cudaMemcpyAsync) memcpy;
};

inline Functions functions_in(void* nccl, void* cudart) {
  const Functions f{reinterpret_cast<decltype(f.all_gather)>(dlsym(nccl, "ncclAllGather")),
                    reinterpret_cast<decltype(f.memcpy)>(dlsym(cudart, "cudaMemcpyAsync"))};
  if (f.all_gather != nullptr && f.memcpy != nullptr) return f;
  std::fprintf(stderr, "%s\n", dlerror());
  std::exit(1);
}
inline Functions called() {
  return functions_in(RTLD_DEFAULT, RTLD_DEFAULT);
}
inline Functions bare() {
  return functions_in(dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD),
                      dlopen("libcudart.so.13", RTLD_LAZY | RTLD_NOLOAD));
}

inline ncclComm_t new_communicator() {
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  if (ncclGetUniqueId(&id) != ncclSuccess || ncclCommInitRank(&comm, 8, id, 3) != ncclSuccess) {
    std::exit(1);
  }
  return comm;
}

// One thread's calls.
class Caller {
 public:
  explicit Caller(ncclComm_t comm) : comm_(comm), ring_(new Line[kLines]{}) {
    void* memory = nullptr;
    if (cudaHostAlloc(&memory, kBytes, cudaHostAllocDefault) != cudaSuccess) std::exit(1);
    pinned_ = static_cast<char*>(memory);
  }

  void calls(Variant variant, std::uint64_t n) {
    switch (variant) {
      case Variant::floor:
        for (std::uint64_t i = 0; i < n; ++i) floor();
        return;
      case Variant::bare_all_gather:
        return all_gathers(bare_.all_gather, n);
      case Variant::all_gather:
        return all_gathers(called_.all_gather, n);
      case Variant::bare_memcpy:
        return memcpys(bare_.memcpy, n);
      case Variant::memcpy:
        return memcpys(called_.memcpy, n);
    }
  }

 private:
  struct alignas(64) Line {
    std::uint64_t word[8];
  };
  static constexpr std::uint64_t kLines = (std::uint64_t{1} << 20) / sizeof(Line);
  static constexpr std::size_t kBytes = 65536;

  void floor() {
    const std::uint64_t start = clock_ns(CLOCK_MONOTONIC);
    const std::uint64_t end = clock_ns(CLOCK_MONOTONIC);
    ring_[next_ % kLines] = {{start, next_, end - start, 1, 2, 3, 4, 5}};
    ++next_;
    asm volatile("" ::: "memory");
  }
  void all_gathers(decltype(Functions::all_gather) function, std::uint64_t n) const {
    asm volatile("" : "+r"(function));
    for (std::uint64_t i = 0; i < n; ++i) {
      function(pinned_, pinned_ + kBytes / 2, 4096, ncclFloat32, comm_, nullptr);
    }
  }
  void memcpys(decltype(Functions::memcpy) function, std::uint64_t n) const {
    asm volatile("" : "+r"(function));
    for (std::uint64_t i = 0; i < n; ++i) {
      function(pinned_ + kBytes / 2, pinned_, 4096, cudaMemcpyHostToDevice, nullptr);
    }
  }

  ncclComm_t comm_;
  char* pinned_;
  std::unique_ptr<Line[]> ring_;
  std::uint64_t next_ = 0;
  Functions bare_ = bare();
  Functions called_ = called();
};

}  // namespace tprof::bench
