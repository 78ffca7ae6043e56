#include "launch/files_of_run.h"

#include "read/load.h"
#include "read/ring_file.h"

namespace tprof::launch {

namespace fs = std::filesystem;

FilesOfRun files_of_run(const fs::path& folder, const std::string& run_id) {
  FilesOfRun files;
  const std::string here = read::boot_id();
  for (const read::TraceFile& file : read::files_in(folder)) {
    const auto header = read::beginning_of(file.path).header;
    if (!header || header->run_id != run_id) {
      files.other_runs = files.other_runs || header;
      continue;
    }
    if (header->boot_id == here) {
      files.ours.push_back(file);
    } else {
      files.others = true;
    }
  }
  return files;
}

}  // namespace tprof::launch
