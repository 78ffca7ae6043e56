// The formats of `tprof export`. Each is one file beside this one, and a line here.
#pragma once

#include <filesystem>
#include <memory>

#include "export/exported.h"
#include "export/output.h"
#include "export/tables.h"

namespace tprof::trace_export {

// The tables (README.md): as a SQLite database, as CSV files in a new folder, and as a data set of
// Parquet files. The first row has to be that of the job.
std::unique_ptr<TableWriter> sqlite_writer(const std::filesystem::path& name, bool indexes = true);
std::unique_ptr<TableWriter> csv_writer(const std::filesystem::path& folder);
std::unique_ptr<TableWriter> parquet_writer(const std::filesystem::path& folder);
// `progress` gets the number of processes done.
void write_tables(const Exported& of, TableWriter& to,
                  const std::function<void(std::size_t)>& progress);

// Another tool's format, with a file for each rank.
struct RankFormat {
  using Processes = std::vector<const read::Process*>;     // of a rank; as a rule there is one
  std::function<std::string(const Processes&)> file_name;  // compressed if it ends in .gz
  // Returns the number of calls that were timed on the device. A rank without any has no file.
  std::function<std::uint64_t(const Processes&, Output&)> write;
};
RankFormat kineto_traces(const Exported& of);   // as PyTorch's profiler writes it
RankFormat inspector_logs(const Exported& of);  // as NCCL's Inspector does

}  // namespace tprof::trace_export
