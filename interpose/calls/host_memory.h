// The kind of memory at an address, known from wrapped allocations.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/format/record.h"

namespace tprof::memory {

// Adds host memory that CUDA allocated, registered or manages.
void add(const void* begin, std::size_t bytes, HostMemory kind);
void remove(const void* begin);
void remove_all();
// Returns `unknown` if no wrapped allocation contains the address.
HostMemory kind_of(const void* address);

void after_fork();  // in the child

}  // namespace tprof::memory
