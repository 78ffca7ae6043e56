// The snapshot: a small file beside a rank file whose ring file lies elsewhere. It holds what the
// ring would add to the rank file at a moment. It serves readers on other nodes, and replaces a
// ring that is lost with its node, its container or its tmpfs.
//
// Two entries at fixed places each describe a text, which is lines of the contract. The texts lie
// after the entries and do not overlap. A new text never touches the valid one, and an entry is
// written after its text. A kill anywhere therefore leaves the older one whole, and the checksums
// show it if pages reach a server out of order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpose/base/hash.h"

namespace tprof {

inline constexpr std::string_view kSnapshotEnd = ".snapshot";  // of its name
inline constexpr char kSnapshotMagic[8] = {'t', 'p', 'r', 'o', 'f', 's', 'n', '1'};

struct SnapshotEntry {
  char magic[8];
  std::uint64_t generation;    // the higher one is valid
  std::uint64_t base_real_ns;  // of the rank file's header: identifies it
  std::uint64_t cut;           // the text continues the rank file after so many bytes
  std::uint64_t offset;        // of the text
  std::uint64_t length;
  std::uint64_t text_sum;  // fnv1a of the text
  std::uint64_t sum;       // of the words before it
};
static_assert(sizeof(SnapshotEntry) == 64);

constexpr std::uint64_t snapshot_entry_at(std::uint64_t generation) {
  return generation % 2 * 512;
}
inline constexpr std::uint64_t kSnapshotTexts = 4096;

inline std::uint64_t checksum(const SnapshotEntry& entry) {
  return fnv1a({reinterpret_cast<const char*>(&entry), offsetof(SnapshotEntry, sum)});
}

}  // namespace tprof
