// Physical memory that programs map by themselves (cuMemCreate, cuMemMap): it is there until its
// last handle is released and its last mapping gone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace standin {

// A handle; 0: out of memory. `device` -1: host memory.
uint64_t create_block(size_t size, int device);
bool release_block(uint64_t handle);
uint64_t retain_block(const void* address);  // a handle of what is mapped there, 0: nothing

void* reserve_addresses(size_t size);
bool free_addresses(void* address, size_t size);
bool map_block(void* address, size_t size, size_t offset, uint64_t handle);
bool unmap_blocks(void* address, size_t size);

}  // namespace standin
