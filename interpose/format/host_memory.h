// The kind of memory on the host's side of a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace tprof {

// pinned, managed: known from a wrapped allocation or registration, or else from the driver.
// pageable: the driver did not know the memory when the call was made. unknown: the driver was not
// asked (captured calls), or did not answer.
enum class HostMemory : std::uint8_t { unknown, pinned, managed, pageable };
inline constexpr const char* kHostMemoryNames[] = {"unknown", "pinned", "managed", "pageable"};
inline constexpr std::size_t kHostMemoryKinds = std::size(kHostMemoryNames);

// Empty if unknown: lines then leave it out.
constexpr std::string_view host_memory_name(HostMemory kind) {
  const auto i = static_cast<std::size_t>(kind);
  return i == 0 || i >= kHostMemoryKinds ? std::string_view() : kHostMemoryNames[i];
}

}  // namespace tprof
