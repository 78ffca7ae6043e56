// --peak: what the user says that links should reach.
#pragma once

#include <string>

#include "why/peak.h"

namespace tprof::cli {

// "400", or "intra=450,inter=50". Throws BadInput for anything else.
why::Peak peak_of(const std::string& text);

}  // namespace tprof::cli
