#include "interpose/device/cupti_buffers.h"

#include <atomic>

#include "interpose/base/free_list.h"
#include "interpose/base/own_memory.h"

namespace tprof::cupti::buffers {
namespace {

// Small, so that each comes back soon: CUPTI keeps one for as long as a kernel of it runs.
constexpr std::size_t kSize = std::size_t{256} << 10;
constexpr std::uint32_t kCount = 256;

struct Place {
  std::uint32_t next;
  std::size_t valid;
};
constinit Place g_place[kCount]{};
constinit FreeList<Place> g_free{};
// Places (1-based) in the order in which their buffers came back. It has as many entries as there
// are places.
constinit std::atomic<std::uint32_t> g_row[kCount]{};
constinit std::atomic<std::uint32_t> g_came{0};
std::uint32_t g_read = 0;
constinit std::atomic<std::uint32_t> g_out{0};
constinit std::atomic<std::uint8_t*> g_memory{nullptr};

}  // namespace

void requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  Place* place = g_free.take(g_place);
  *buffer = place == nullptr ? nullptr
                             : g_memory.load(std::memory_order_relaxed) +
                                   static_cast<std::size_t>(place - g_place) * kSize;
  *size = place == nullptr ? 0 : kSize;
  *most_records = 0;
  if (place != nullptr) g_out.fetch_add(1, std::memory_order_relaxed);
}

void completed(void*, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  if (!is_ours(buffer)) return;
  const auto index = static_cast<std::uint32_t>(
      static_cast<std::size_t>(buffer - g_memory.load(std::memory_order_relaxed)) / kSize);
  g_place[index].valid = valid;
  const std::uint32_t at = g_came.fetch_add(1, std::memory_order_relaxed);
  g_row[at % kCount].store(index + 1, std::memory_order_release);
  g_out.fetch_sub(1, std::memory_order_relaxed);
}

bool is_ours(const std::uint8_t* buffer) {
  const std::uint8_t* memory = g_memory.load(std::memory_order_relaxed);
  return memory != nullptr && buffer >= memory && buffer < memory + kSize * kCount;
}

bool any_out() {
  return g_out.load(std::memory_order_relaxed) != 0;
}

bool next(Buffer& buffer) {
  const std::uint32_t index = g_row[g_read % kCount].exchange(0, std::memory_order_acquire);
  if (index == 0) return false;
  ++g_read;
  buffer = {g_memory.load(std::memory_order_relaxed) + std::size_t{index - 1} * kSize,
            g_place[index - 1].valid};
  return true;
}

void give_back(const Buffer& buffer) {
  const auto at = static_cast<std::size_t>(buffer.data - g_memory.load(std::memory_order_relaxed));
  g_free.give_back(g_place, g_place[at / kSize]);
}

bool begin() {
  void* pages = take_memory(kSize * kCount);
  if (pages == nullptr) return false;
  g_memory.store(static_cast<std::uint8_t*>(pages), std::memory_order_relaxed);
  for (std::uint32_t i = kCount; i-- != 0;) g_free.give_back(g_place, g_place[i]);
  return true;
}

}  // namespace tprof::cupti::buffers
