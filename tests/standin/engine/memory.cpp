#include "engine/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "engine/memory_books.h"

namespace standin {
namespace {

constexpr size_t kTotal = size_t{80} << 30;

struct Memory {
  std::shared_mutex mutex;
  std::map<const char*, Allocation> by_base;  // ranges do not overlap
  std::vector<size_t> used = std::vector<size_t>(64);
};

// Leaked on purpose: the program's threads may outlive static destructors.
Memory& memory() {
  static auto& m = *new Memory;
  return m;
}

const Allocation* find(const void* pointer) {
  auto& all = memory().by_base;
  auto after = all.upper_bound(static_cast<const char*>(pointer));
  if (after == all.begin()) return nullptr;
  const Allocation& a = std::prev(after)->second;
  const auto offset = static_cast<const char*>(pointer) - static_cast<const char*>(a.base);
  return static_cast<size_t>(offset) < a.size ? &a : nullptr;
}

// Device memory is mapped, so that untouched gigabytes cost nothing.
size_t pages(size_t size) {
  return (size + 4095) / 4096 * 4096;
}

bool is_device(cudaMemoryType type) {
  return type == cudaMemoryTypeDevice;
}

}  // namespace

void* allocate(size_t size, cudaMemoryType type, int device, size_t asked) {
  if (size == 0) return nullptr;
  const std::lock_guard lock(memory().mutex);
  size_t& used = memory().used[static_cast<size_t>(device)];
  if (is_device(type) && (size > kTotal || used + size > kTotal)) return nullptr;
  void* base = mmap(nullptr, pages(size), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  if (is_device(type)) used += size;
  const size_t booked = std::min(asked, size);
  memory().by_base[static_cast<char*>(base)] = {base, size, type, device, booked};
  memory_books::add(type, device, static_cast<int64_t>(booked));
  return base;
}

bool release(void* base, cudaMemoryType type) {
  const std::lock_guard lock(memory().mutex);
  auto found = memory().by_base.find(static_cast<char*>(base));
  if (found == memory().by_base.end()) return false;
  const Allocation a = found->second;
  // cudaFree also takes managed memory, cudaFreeHost only pinned memory.
  const bool fits = a.type == type || (is_device(type) && a.type == cudaMemoryTypeManaged);
  if (!fits) return false;
  if (is_device(a.type)) memory().used[static_cast<size_t>(a.device)] -= a.size;
  memory_books::add(a.type, a.device, -static_cast<int64_t>(a.booked));
  memory().by_base.erase(found);
  munmap(base, pages(a.size));
  return true;
}

void release_all(int device) {
  const std::lock_guard lock(memory().mutex);
  std::erase_if(memory().by_base, [device](const auto& entry) {
    const Allocation& a = entry.second;
    if (a.device != device || a.by_hand) return false;
    if (is_device(a.type)) memory().used[static_cast<size_t>(device)] -= a.size;
    memory_books::add(a.type, a.device, -static_cast<int64_t>(a.booked));
    munmap(a.base, pages(a.size));
    return true;
  });
}

bool register_host(void* base, size_t size) {
  const std::lock_guard lock(memory().mutex);
  if (find(base) || find(static_cast<char*>(base) + size - 1)) return false;
  // The type is Host, as for cudaHostAlloc. Device -1 marks memory that is not ours to unmap.
  memory().by_base[static_cast<char*>(base)] = {base, size, cudaMemoryTypeHost, -1, size};
  memory_books::add(cudaMemoryTypeHost, 0, static_cast<int64_t>(size));
  return true;
}

bool unregister_host(void* base) {
  const std::lock_guard lock(memory().mutex);
  auto found = memory().by_base.find(static_cast<char*>(base));
  if (found == memory().by_base.end() || found->second.device != -1) return false;
  memory_books::add(cudaMemoryTypeHost, 0, -static_cast<int64_t>(found->second.booked));
  memory().by_base.erase(found);
  return true;
}

void let_go(void* base) {
  const std::lock_guard lock(memory().mutex);
  auto found = memory().by_base.find(static_cast<char*>(base));
  if (found == memory().by_base.end()) return;
  Allocation& a = found->second;
  memory_books::add(a.type, a.device, -static_cast<int64_t>(std::exchange(a.booked, 0)));
}

void know(void* base, size_t size, cudaMemoryType type, int device) {
  const std::lock_guard lock(memory().mutex);
  memory().by_base[static_cast<char*>(base)] = {base, size, type, device, 0, true};
}
void forget(void* base) {
  const std::lock_guard lock(memory().mutex);
  memory().by_base.erase(static_cast<char*>(base));
}

std::optional<Allocation> find_allocation(const void* pointer) {
  const std::shared_lock lock(memory().mutex);
  const Allocation* a = find(pointer);
  return a ? std::optional(*a) : std::nullopt;
}

cudaMemoryType memory_type(const void* pointer) {
  const auto a = find_allocation(pointer);
  return a ? a->type : cudaMemoryTypeUnregistered;
}

size_t device_memory_total() {
  return kTotal;
}

size_t device_memory_used(int device) {
  const std::shared_lock lock(memory().mutex);
  return memory().used[static_cast<size_t>(device)];
}

}  // namespace standin
