// What a file is, by its first lines.
#pragma once

#include <filesystem>
#include <optional>

#include "read/process.h"

namespace tprof::read {

struct Beginning {
  bool merged = false;           // a merged trace
  std::optional<Header> header;  // of a rank file
};

// Neither: something else, or its first lines can't be read. Never throws.
Beginning beginning_of(const std::filesystem::path& file);

}  // namespace tprof::read
