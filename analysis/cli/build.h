// Says of which source this `tprof` was built, and with which compiler.
#pragma once

namespace tprof::cli {

extern const char* const kCommit;    // "unknown" if the source was not in a repository
extern const char* const kCompiler;  // and for which processor

}  // namespace tprof::cli
