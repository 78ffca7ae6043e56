// What Nsight Systems recorded, as `nsys export --type sqlite` writes it: kernels, copies and
// memsets on a lane for each stream, calls of CUDA and NVTX ranges on lanes of their threads. By
// NVIDIA's description of the schema.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "export/other_trace.h"

namespace tprof::trace_export {

struct NsysProcesses {
  std::vector<std::int64_t> pids;  // that something was recorded of
  std::string host;                // empty: not known
};
NsysProcesses nsys_processes(const std::filesystem::path& file);

// `pid`: of this process only; none: of all. Throws BadInput as the other one does.
std::unique_ptr<OtherTrace> open_nsys(const std::filesystem::path& file,
                                      std::optional<std::int64_t> pid);

}  // namespace tprof::trace_export
