// The largest page of memory that a kernel of this machine may have.
#pragma once

#include <cstddef>

namespace tprof {

// x86-64 has pages of 4 KiB. Kernels for aarch64 have pages of 4, 16 or 64 KiB, which is known only
// where they run.
#if defined(__x86_64__)
inline constexpr std::size_t kLargestPage = 4096;
#else
inline constexpr std::size_t kLargestPage = 65536;
#endif

}  // namespace tprof
