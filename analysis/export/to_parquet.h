// Makes Parquet files of CSV files. pyarrow does: its files are what other tools are tested with,
// and it comes with what people train with. Arrow's C++ library is in no Debian.
#pragma once

#include <filesystem>
#include <string>

namespace tprof::trace_export {

// Throws BadInput if the first python3 of PATH has no pyarrow.
void require_pyarrow();

// `files` is what to_parquet.py takes; its paths are within a folder. Throws CantWrite.
void to_parquet(const std::filesystem::path& folder, const std::string& files);

}  // namespace tprof::trace_export
