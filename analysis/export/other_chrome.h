// A trace in Chrome's format, plain or gzip: PyTorch's profiler, Composer's JSONTraceHandler.
#pragma once

#include <filesystem>
#include <memory>

#include "export/other_trace.h"

namespace tprof::trace_export {

// When its times begin, one of these tells: `baseTimeNanoseconds` (PyTorch's, since 2.2), or ts
// that are microseconds since 1970.
std::unique_ptr<OtherTrace> open_chrome(const std::filesystem::path& file);

}  // namespace tprof::trace_export
