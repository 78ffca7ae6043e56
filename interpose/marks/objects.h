// Keeps the libraries and programs that calls come through in the mapped file, each once.
#pragma once

#include <cstddef>

#include "interpose/format/sites.h"

namespace tprof::sites {

// Finds the objects in which return addresses lie. Takes the loader's lock of its list, and the
// tables' lock.
void locate(const std::uintptr_t* addresses, std::size_t n, SiteAddress* to);

}  // namespace tprof::sites
