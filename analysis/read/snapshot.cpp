#include "read/load.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

#include "interpose/format/snapshot.h"

namespace tprof::read {
namespace {

constexpr std::uint64_t kLongest = std::uint64_t{1} << 30;

std::string bytes_at(std::ifstream& in, std::uint64_t offset, std::uint64_t size) {
  std::string bytes(size, '\0');
  in.clear();
  in.seekg(static_cast<std::streamoff>(offset));
  in.read(bytes.data(), static_cast<std::streamsize>(size));
  bytes.resize(in.gcount() < 0 ? 0 : static_cast<std::size_t>(in.gcount()));
  return bytes;
}

// Returns all zeros if there is no valid entry of this process.
SnapshotEntry entry_at(std::ifstream& in, std::uint64_t offset, const Header& header) {
  const std::string bytes = bytes_at(in, offset, sizeof(SnapshotEntry));
  SnapshotEntry e{};
  if (bytes.size() != sizeof e) return {};
  std::memcpy(&e, bytes.data(), sizeof e);
  const bool ours = std::memcmp(e.magic, kSnapshotMagic, sizeof e.magic) == 0 &&
                    e.sum == checksum(e) &&
                    e.base_real_ns == static_cast<std::uint64_t>(header.base_time_ns);
  return ours ? e : SnapshotEntry{};
}

}  // namespace

std::filesystem::path snapshot_path(const std::filesystem::path& rank_file) {
  return rank_file.parent_path() / ("." + rank_file.stem().string() + ".snapshot");
}

std::optional<SnapshotText> read_snapshot(const std::filesystem::path& rank_file,
                                          const Header& header) {
  std::ifstream in(snapshot_path(rank_file), std::ios::binary | std::ios::ate);
  if (!in) return std::nullopt;
  // The process may replace the older one while we read it: then the newer one is whole.
  constexpr int kAttempts = 3;
  for (int i = 0; i < kAttempts; ++i) {
    std::array entries = {entry_at(in, snapshot_entry_at(0), header),
                          entry_at(in, snapshot_entry_at(1), header)};
    std::ranges::sort(entries, std::ranges::greater{}, &SnapshotEntry::generation);
    for (const SnapshotEntry& e : entries) {
      if (e.generation == 0 || e.length > kLongest) continue;
      in.clear();
      in.seekg(0, std::ios::end);
      const auto size = static_cast<std::uint64_t>(in.tellg());
      if (e.offset > size || e.length > size - e.offset) continue;
      std::string text = bytes_at(in, e.offset, e.length);
      if (text.size() == e.length && fnv1a(text) == e.text_sum) return SnapshotText{e.cut, text};
    }
  }
  return std::nullopt;
}

}  // namespace tprof::read
