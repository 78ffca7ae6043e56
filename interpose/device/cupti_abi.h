// Declares the parts of CUPTI that we use: libtprof.so is built without its headers and runs with
// the process's version.
//
// Records have only the fields with the same offset in all versions, from CUDA 11.0 to 13.0: of
// CUpti_ActivityKernel4 to 10, CUpti_ActivityMemcpy to 6, and CUpti_ActivityMemcpyPtoP to 4.
// tests/unit/interpose_cupti_abi.cpp checks them against the vendor's header, if there is one.
// CUPTI itself iterates over records, so their sizes do not matter.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tprof::cupti {

using Result = int;
inline constexpr Result kSuccess = 0;
inline constexpr Result kTaken = 39;  // CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED

enum class ActivityKind : std::uint32_t {
  memcpy = 1,
  driver = 4,
  runtime = 5,
  kernel = 10,  // CONCURRENT_KERNEL: KERNEL (3) serializes kernels
  peer_memcpy = 22,
  external = 39,
};

// CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2: PyTorch's profiler uses CUSTOM0 and CUSTOM1.
inline constexpr std::uint32_t kOurs = 5;

struct Record {
  ActivityKind kind;
};
struct External {
  ActivityKind kind;
  std::uint32_t whose;
  std::uint64_t id;
  std::uint32_t call;  // CUPTI's correlation id of a runtime or driver call
};
struct Copy {
  ActivityKind kind;
  std::uint32_t not_ours[3];
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device;
  std::uint32_t not_ours_either[2];
  std::uint32_t call;
};
struct PeerCopy {
  ActivityKind kind;
  std::uint32_t not_ours[3];
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device;
  std::uint32_t not_ours_either[6];
  std::uint32_t call;
};
struct Kernel {
  ActivityKind kind;
  std::uint32_t not_ours[3];
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t completed;
  std::uint32_t device;
  std::uint32_t not_ours_either[12];
  std::uint32_t call;
  std::uint64_t grid;
  const char* name;
};

using Requested = void (*)(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records);
using Completed = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer,
                           std::size_t size, std::size_t valid);

}  // namespace tprof::cupti
