// The snapshot that a process keeps beside its rank file where its ring file lies elsewhere.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "read/process.h"

namespace tprof::read {

std::filesystem::path snapshot_path(const std::filesystem::path& rank_file);

struct SnapshotText {
  std::uint64_t cut = 0;  // bytes of the rank file that the lines follow
  std::string lines;
};

// The newest that is whole. Nothing where there is none of that process.
std::optional<SnapshotText> read_snapshot(const std::filesystem::path& rank_file,
                                          const Header& header);

}  // namespace tprof::read
