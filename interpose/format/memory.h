// Memory that the program has allocated (TPROF_MEMORY): where it is, and how much.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpose/base/text.h"

namespace tprof {

// Places: the devices, then one for all other or unknown devices, then host memory that CUDA pins,
// then managed memory, which is where it was last used.
inline constexpr std::uint8_t kMemoryDevices = 32;
inline constexpr std::uint8_t kOtherDevice = kMemoryDevices;
inline constexpr std::uint8_t kPinnedMemory = kOtherDevice + 1;
inline constexpr std::uint8_t kManagedMemory = kPinnedMemory + 1;
inline constexpr std::uint8_t kMemoryPlaces = kManagedMemory + 1;

constexpr std::uint8_t place_of_device(std::int32_t device) {
  return device >= 0 && device < kMemoryDevices ? static_cast<std::uint8_t>(device) : kOtherDevice;
}

inline constexpr std::string_view kMemoryKinds[] = {"device", "pinned", "managed"};
constexpr std::string_view memory_kind(std::uint8_t place) {
  if (place == kPinnedMemory) return kMemoryKinds[1];
  return place == kManagedMemory ? kMemoryKinds[2] : kMemoryKinds[0];
}

// Bytes now, and at the peak. The peak is stored first.
struct MemoryUse {
  std::atomic<std::uint64_t> bytes;
  std::atomic<std::uint64_t> peak;
};

// The lane of these values in the timeline, and its keys.
inline constexpr std::string_view kMemoryLane = "allocated memory, bytes";
inline std::string_view memory_key(std::uint8_t place, char (&room)[16]) {
  if (place == kOtherDevice) return "other devices";
  if (place > kOtherDevice) return memory_kind(place);
  return (FixedText(room) << "device ").number(place).view();
}

}  // namespace tprof
