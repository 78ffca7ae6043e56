#include "interpose/calls/host_memory.h"

#include <algorithm>
#include <atomic>

#include "interpose/base/lock.h"

namespace tprof::memory {
namespace {

// Sorted by address. Frameworks cache pinned blocks, so changes are rare. A lookup takes no lock:
// it is a binary search between two reads of the version. Memory beyond the limit is unknown.
constexpr std::size_t kMaxRanges = 8192;
struct Range {
  std::atomic<std::uintptr_t> begin;
  std::atomic<std::uintptr_t> end;
  std::atomic<HostMemory> kind;

  Range& operator=(const Range& other) {
    begin.store(other.begin.load(std::memory_order_relaxed), std::memory_order_relaxed);
    end.store(other.end.load(std::memory_order_relaxed), std::memory_order_relaxed);
    kind.store(other.kind.load(std::memory_order_relaxed), std::memory_order_relaxed);
    return *this;
  }
};
Range g_range[kMaxRanges];
std::atomic<std::size_t> g_count{0};
std::atomic<std::uint32_t> g_version{0};  // odd while the table changes
Lock g_lock{LockOrder::host_memory};      // for changes to the table

// Returns how many ranges begin at or below `address`.
std::size_t up_to(std::uintptr_t address) {
  std::size_t low = 0;
  std::size_t high = std::min(g_count.load(std::memory_order_relaxed), kMaxRanges);
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (g_range[middle].begin.load(std::memory_order_relaxed) <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Returns false if other threads kept changing the table.
bool look_up(const void* address, HostMemory& kind) {
  kind = HostMemory::unknown;
  if (g_count.load(std::memory_order_relaxed) == 0) return true;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  constexpr int kTries = 4;
  for (int i = 0; i < kTries; ++i) {
    const std::uint32_t version = g_version.load(std::memory_order_acquire);
    const std::size_t place = up_to(at);
    kind = HostMemory::unknown;
    if (place != 0 && at < g_range[place - 1].end.load(std::memory_order_relaxed)) {
      kind = g_range[place - 1].kind.load(std::memory_order_relaxed);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    if (version % 2 == 0 && g_version.load(std::memory_order_relaxed) == version) return true;
  }
  return false;
}

class [[nodiscard]] Change : NotCopied {
 public:
  Change() {
    g_version.fetch_add(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
  }
  ~Change() { g_version.fetch_add(1, std::memory_order_release); }

 private:
  LockGuard guard_{g_lock};
};

}  // namespace

void add(const void* begin, std::size_t bytes, HostMemory kind) {
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  const Change change;
  const std::size_t count = g_count.load(std::memory_order_relaxed);
  if (count == kMaxRanges) return;
  const std::size_t place = up_to(at);
  for (std::size_t i = count; i > place; --i) g_range[i] = g_range[i - 1];
  g_range[place].begin.store(at, std::memory_order_relaxed);
  g_range[place].end.store(at + bytes, std::memory_order_relaxed);
  g_range[place].kind.store(kind, std::memory_order_relaxed);
  g_count.store(count + 1, std::memory_order_relaxed);
}

void remove(const void* begin) {
  // Most freed memory is not here, and its free need not take the lock. A thread that frees a range
  // has seen it added.
  HostMemory kind{};
  if (look_up(begin, kind) && kind == HostMemory::unknown) return;
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  const Change change;
  const std::size_t count = g_count.load(std::memory_order_relaxed);
  const std::size_t place = up_to(at);
  if (place == 0 || g_range[place - 1].begin.load(std::memory_order_relaxed) != at) return;
  for (std::size_t i = place; i < count; ++i) g_range[i - 1] = g_range[i];
  g_count.store(count - 1, std::memory_order_relaxed);
}

void remove_all() {
  const Change change;
  g_count.store(0, std::memory_order_relaxed);
}

HostMemory kind_of(const void* address) {
  HostMemory kind{};
  return look_up(address, kind) ? kind : HostMemory::unknown;
}

void after_fork() {
  if (g_version.load(std::memory_order_relaxed) % 2 != 0) g_version.fetch_add(1);
}

}  // namespace tprof::memory
