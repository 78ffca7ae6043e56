#include "interpose/record/allocations.h"

#include <algorithm>

#include "interpose/base/lock.h"
#include "interpose/base/shared_map.h"
#include "interpose/format/ring_file.h"

namespace tprof::allocations {
namespace {

// The highest bits of a key distinguish handles from addresses, which never have these bits.
constexpr std::uint64_t kMemory = std::uint64_t{1} << 60;
constexpr std::uint64_t kHandle = std::uint64_t{2} << 60;

constinit MemoryUse g_before_session[kMemoryPlaces] = {};

constinit Lock g_lock{LockOrder::allocations};  // guards everything below
constinit SharedMap<Entry> g_entries{LockOrder::handles};
constinit MemoryUse* g_use = g_before_session;
constinit Head* g_head = nullptr;
constinit bool g_failed = false;  // an entry did not fit: the numbers are wrong from now on

void fail() {
  g_failed = true;
  if (g_head != nullptr) g_head->memory_known.store(0, std::memory_order_relaxed);
}

void add(std::uint8_t place, std::uint64_t bytes) {
  MemoryUse& use = g_use[place];
  const std::uint64_t now = use.bytes.load(std::memory_order_relaxed) + bytes;
  if (now > use.peak.load(std::memory_order_relaxed)) {
    use.peak.store(now, std::memory_order_release);
  }
  use.bytes.store(now, std::memory_order_release);
}
void subtract(std::uint8_t place, std::uint64_t bytes) {
  MemoryUse& use = g_use[place];
  const std::uint64_t now = use.bytes.load(std::memory_order_relaxed);
  use.bytes.store(now - std::min(now, bytes), std::memory_order_release);
}

}  // namespace

std::uint64_t key_of(const void* at) {
  return key_of(reinterpret_cast<std::uintptr_t>(at));
}
std::uint64_t key_of(std::uint64_t at) {
  return at == 0 ? 0 : kMemory | at;
}
std::uint64_t key_of_handle(std::uint64_t handle) {
  return kHandle | (handle & (kMemory - 1));
}

void allocated(std::uint64_t key, std::uint64_t bytes, std::uint8_t place) {
  if (key == 0) return;
  const LockGuard guard(g_lock);
  Entry known{};
  if (g_entries.find(key, known)) {  // it was freed unseen
    subtract(known.place, known.bytes);
    g_entries.erase(key);
  }
  if (g_failed) return;
  if (!g_entries.insert(key, {bytes, place})) return fail();
  add(place, bytes);
}

Taken take(std::uint64_t key) {
  const LockGuard guard(g_lock);
  Taken taken{key, {}};
  if (!g_entries.find(key, taken.entry)) return {};
  g_entries.erase(key);
  subtract(taken.entry.place, taken.entry.bytes);
  return taken;
}

void put_back(const Taken& taken) {
  allocated(taken.key, taken.entry.bytes, taken.entry.place);
}

void publish(Head& head) {
  const LockGuard guard(g_lock);
  for (std::size_t i = 0; i < kMemoryPlaces; ++i) {
    head.memory[i].peak.store(g_use[i].peak.load(std::memory_order_relaxed));
    head.memory[i].bytes.store(g_use[i].bytes.load(std::memory_order_relaxed));
  }
  g_use = head.memory;
  g_head = &head;
  head.memory_known.store(g_failed ? 0 : 1, std::memory_order_release);
}

void after_fork() {
  const LockGuard guard(g_lock);
  g_entries.clear();
  for (MemoryUse& use : g_before_session) {
    use.bytes.store(0, std::memory_order_relaxed);
    use.peak.store(0, std::memory_order_relaxed);
  }
  g_use = g_before_session;
  g_head = nullptr;
  g_failed = false;
}

}  // namespace tprof::allocations
