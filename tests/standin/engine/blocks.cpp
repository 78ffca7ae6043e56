#include "engine/blocks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "engine/memory.h"
#include "engine/memory_books.h"

namespace standin {
namespace {

struct Block {
  int fd;  // lets two mappings share the same memory
  size_t size;
  int device;
  int handles, mappings;
};
struct Mapping {
  size_t size;
  uint64_t block;
};

struct Blocks {
  std::mutex mutex;
  std::map<uint64_t, Block> all;
  std::map<char*, Mapping> mappings;
  uint64_t last = 0;
};
Blocks& blocks() {
  static auto& b = *new Blocks;
  return b;
}

cudaMemoryType type_of(const Block& b) {
  return b.device < 0 ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
}

void drop_if_unused(uint64_t handle) {
  const Block b = blocks().all.at(handle);
  if (b.handles != 0 || b.mappings != 0) return;
  close(b.fd);
  memory_books::add(type_of(b), b.device, -static_cast<int64_t>(b.size));
  blocks().all.erase(handle);
}

}  // namespace

uint64_t create_block(size_t size, int device) {
  const std::lock_guard lock(blocks().mutex);
  if (size == 0 || size > device_memory_total()) return 0;
  const int fd = memfd_create("standin", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(size)) != 0) return 0;
  const uint64_t handle = ++blocks().last;
  blocks().all[handle] = {fd, size, device, 1, 0};
  memory_books::add(type_of(blocks().all[handle]), device, static_cast<int64_t>(size));
  return handle;
}

bool release_block(uint64_t handle) {
  const std::lock_guard lock(blocks().mutex);
  const auto found = blocks().all.find(handle);
  if (found == blocks().all.end() || found->second.handles == 0) return false;
  --found->second.handles;
  drop_if_unused(handle);
  return true;
}

uint64_t retain_block(const void* address) {
  const std::lock_guard lock(blocks().mutex);
  for (const auto& [begin, m] : blocks().mappings) {
    const auto offset = static_cast<const char*>(address) - begin;
    if (offset < 0 || static_cast<size_t>(offset) >= m.size) continue;
    ++blocks().all.at(m.block).handles;
    return m.block;
  }
  return 0;
}

void* reserve_addresses(size_t size) {
  void* p = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}
bool free_addresses(void* address, size_t size) {
  return munmap(address, size) == 0;
}

bool map_block(void* address, size_t size, size_t offset, uint64_t handle) {
  const std::lock_guard lock(blocks().mutex);
  const auto found = blocks().all.find(handle);
  if (found == blocks().all.end() || offset + size > found->second.size) return false;
  auto* at = static_cast<char*>(address);
  if (blocks().mappings.contains(at)) return false;
  const void* mapped = mmap(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                            found->second.fd, static_cast<off_t>(offset));
  if (mapped != address) return false;
  blocks().mappings[at] = {size, handle};
  ++found->second.mappings;
  know(address, size, type_of(found->second), found->second.device);
  return true;
}

bool unmap_blocks(void* address, size_t size) {
  const std::lock_guard lock(blocks().mutex);
  auto* at = static_cast<char*>(address);
  char* const end = at + size;
  while (at < end) {
    const auto found = blocks().mappings.find(at);
    if (found == blocks().mappings.end()) return false;
    const Mapping m = found->second;
    mmap(at, m.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    forget(at);
    blocks().mappings.erase(found);
    --blocks().all.at(m.block).mappings;
    drop_if_unused(m.block);
    at += m.size;
  }
  return true;
}

}  // namespace standin
