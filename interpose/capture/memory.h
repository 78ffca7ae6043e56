// What kind of memory an address is, as far as wrapped allocations and the driver tell.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/format/record.h"

namespace tprof::memory {

// Host memory that CUDA allocated, registered or manages.
void add(const void* begin, std::size_t bytes, HostMemory kind);
void remove(const void* begin);
void remove_all();
// `unknown` where no wrapped allocation holds the address.
HostMemory kind_of(const void* address);

void after_fork();  // in the child

}  // namespace tprof::memory
