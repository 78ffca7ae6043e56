// The source and the compiler of this `tprof`.
#pragma once

namespace tprof::cli {

extern const char* const kCommit;    // "unknown" without a repository
extern const char* const kCompiler;  // and the processor

}  // namespace tprof::cli
