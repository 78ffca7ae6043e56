// What kind of memory the host's side of a copy is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace tprof {

// pinned, managed: as a wrapped allocation or registration tells it, or else the driver. pageable:
// the driver said, as the call was made, that it knows no such memory. unknown: nobody was asked
// (captured calls), or there was no answer.
enum class HostMemory : std::uint8_t { unknown, pinned, managed, pageable };
inline constexpr const char* kHostMemoryNames[] = {"unknown", "pinned", "managed", "pageable"};
inline constexpr std::size_t kHostMemoryKinds = std::size(kHostMemoryNames);

// Empty: it is not known, and no line says it.
constexpr std::string_view host_memory_name(HostMemory kind) {
  const auto i = static_cast<std::size_t>(kind);
  return i == 0 || i >= kHostMemoryKinds ? std::string_view() : kHostMemoryNames[i];
}

}  // namespace tprof
