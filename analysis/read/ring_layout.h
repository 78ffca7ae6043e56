// Whether a ring file is laid out as one that was written by libtprof.so.
#pragma once

#include <filesystem>

#include "interpose/format/view.h"

namespace tprof::read {

// View keeps every access within the file. This keeps the work and the memory of reading it within
// its size: no two parts may share bytes, or a small file could hold a thousand times its rows; and
// the names of functions have to be names, since they go into lines as they are. Throws BadInput.
void check_layout(const std::filesystem::path& file, const View& view);

}  // namespace tprof::read
