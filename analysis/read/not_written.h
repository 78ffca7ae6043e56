// Why an output could not be written or made.
#pragma once

#include <filesystem>

#include "read/error.h"

namespace tprof::read {

// Names the output as the user gave it, says why it was not written, and what to do. `error` is an
// errno.
BadInput not_written(const std::filesystem::path& given, int error);

}  // namespace tprof::read
