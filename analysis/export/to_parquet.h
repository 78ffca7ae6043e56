// Makes Parquet files of CSV files. pyarrow does: its files are what other tools are tested with,
// and it comes with what people train with. Arrow's C++ library is in no Debian.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace tprof::trace_export {

// Paths are within a folder.
struct ParquetJob {
  std::string csv;      // with a line of names first; it is removed
  std::string parquet;  // a new file
  std::vector<std::pair<std::string, std::string>> columns;  // with Arrow's names of their types
};

// Throws BadInput if the first python3 of PATH has no pyarrow.
void require_pyarrow();

// Throws CantWrite.
void to_parquet(const std::filesystem::path& folder, const std::vector<ParquetJob>& jobs);

}  // namespace tprof::trace_export
