// Reads a trace in Chrome's format, plain or gzip: PyTorch's profiler, Composer's JSONTraceHandler.
#pragma once

#include <filesystem>
#include <memory>

#include "export/other_trace.h"

namespace tprof::trace_export {

// Opens a trace. However large, it is read once to be placed and once more to be written, so that
// only one is in memory. Throws BadInput if it is no such trace, or if nothing says at which moment
// its times begin.
//
// Times begin at `baseTimeNanoseconds` (PyTorch's, since 2.2), or ts are microseconds since 1970.
std::unique_ptr<OtherTrace> open_chrome(const std::filesystem::path& file);

}  // namespace tprof::trace_export
