#include <cstring>
#include <fstream>
#include <iterator>

#include "interpose/format/snapshot.h"
#include "read/load.h"

namespace tprof::read {

std::filesystem::path snapshot_path(const std::filesystem::path& rank_file) {
  return rank_file.parent_path() / ("." + rank_file.stem().string() + ".snapshot");
}

std::optional<Rest> read_snapshot(const std::filesystem::path& rank_file, const Header& header) {
  // The process may replace the older text while we read it: then the newer one is whole.
  constexpr int kAttempts = 3;
  for (int i = 0; i < kAttempts; ++i) {
    std::ifstream in(snapshot_path(rank_file), std::ios::binary);
    if (!in) return std::nullopt;
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    std::optional<Rest> newest;
    std::uint64_t generation = 0;
    for (const std::uint64_t at : {snapshot_entry_at(0), snapshot_entry_at(1)}) {
      SnapshotEntry e{};
      if (bytes.size() < at + sizeof e) continue;
      std::memcpy(&e, bytes.data() + at, sizeof e);
      const bool ours = std::memcmp(e.magic, kSnapshotMagic, sizeof e.magic) == 0 &&
                        e.sum == checksum(e) &&
                        e.base_real_ns == static_cast<std::uint64_t>(header.base_time_ns);
      if (!ours || e.generation <= generation || e.offset > bytes.size()) continue;
      const std::string_view text = std::string_view(bytes).substr(e.offset, e.length);
      if (text.size() != e.length || fnv1a(text) != e.text_sum) continue;
      generation = e.generation;
      newest = Rest{e.cut, std::string(text)};
    }
    if (newest) return newest;
  }
  return std::nullopt;
}

}  // namespace tprof::read
