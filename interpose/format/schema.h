// The names and numbers by which readers recognise what libtprof.so writes.
#pragma once

#include <cstdint>

namespace tprof {

inline constexpr char kSchema[] = "tprof/1";
inline constexpr char kVersion[] = "0.1.0";

// The layout version of the ring file: readers of another version refuse it with a message. Bump it
// with any change to record.h, ledger.h or ring_file.h.
inline constexpr std::uint32_t kRingLayout = 42;
inline constexpr char kRingMagic[8] = {'t', 'p', 'r', 'o', 'f', 'r', 'n', 'g'};

}  // namespace tprof
