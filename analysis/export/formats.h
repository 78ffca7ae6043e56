// The formats of `tprof export`. Each is one file beside this one, and a line here.
#pragma once

#include <filesystem>
#include <memory>

#include "export/exported.h"
#include "export/rank_files.h"
#include "export/tables.h"

namespace tprof::trace_export {

// The tables (README.md): as a SQLite database, as CSV files in a new folder, and as a data set of
// Parquet files. The first row has to be that of the job.
std::unique_ptr<TableWriter> sqlite_writer(const std::filesystem::path& name);
std::unique_ptr<TableWriter> csv_writer(const std::filesystem::path& folder);
std::unique_ptr<TableWriter> parquet_writer(const std::filesystem::path& folder);

// A file for each rank: as PyTorch's profiler writes it, and as NCCL's Inspector does.
MakeRankFormat kineto_traces(const Exported& of);
MakeRankFormat inspector_logs(const Exported& of);

}  // namespace tprof::trace_export
