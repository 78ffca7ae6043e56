// A trace in Chrome's format, plain or gzip: PyTorch's profiler, Composer's JSONTraceHandler.
#pragma once

#include <filesystem>
#include <memory>

#include "export/other_trace.h"

namespace tprof::trace_export {

// As large as it may be, it is read once to be placed and once more to be written, so that only one
// is in memory. Throws BadInput where it is no such trace, or where nothing tells which moment its
// times begin at.
//
// When its times begin, one of these tells: `baseTimeNanoseconds` (PyTorch's, since 2.2), or ts
// that are microseconds since 1970.
std::unique_ptr<OtherTrace> open_chrome(const std::filesystem::path& file);

}  // namespace tprof::trace_export
