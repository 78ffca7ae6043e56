// Physical memory that programs map themselves (cuMemCreate, cuMemMap). It lives until its last
// handle is released and its last mapping is gone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace standin {

// Returns a handle, or 0 if out of memory. A `device` of -1 means host memory.
uint64_t create_block(size_t size, int device);
bool release_block(uint64_t handle);
uint64_t retain_block(const void* address);  // a handle of the block there; 0: none

void* reserve_addresses(size_t size);
bool free_addresses(void* address, size_t size);
bool map_block(void* address, size_t size, size_t offset, uint64_t handle);
bool unmap_blocks(void* address, size_t size);

}  // namespace standin
