// Appending to the tables of the mapped file (communicators, graphs).
#pragma once

#include <cstring>

#include "interpose/base/lock.h"
#include "interpose/format/ring_file.h"
#include "interpose/session/session.h"

namespace tprof::tables {

inline Lock g_lock{LockOrder::tables};

// Adds `entry`, calls prepare(index) and then publishes it. Returns the index, 1-based; 0 if the
// table has `limit` entries or no memory is left.
template <typename T, typename F = decltype([](std::uint32_t) {})>
std::uint32_t append(Table& table, const T& entry,
                     std::uint32_t limit = kTableChunks * kChunkEntries, F prepare = {}) {
  const LockGuard guard(g_lock);
  const Mapping& m = session::mapping();
  const std::uint32_t at = table.count.load(std::memory_order_relaxed);
  if (at >= limit) return 0;
  const std::uint32_t chunk = at / kChunkEntries;
  if (table.chunk[chunk] == 0) {
    table.chunk[chunk] = session::mapping().allocate(kChunkEntries * sizeof(T));
    if (table.chunk[chunk] == 0) return 0;
  }
  std::memcpy(m.at<std::byte>(table.chunk[chunk]) + (at % kChunkEntries) * sizeof(T), &entry,
              sizeof(T));
  prepare(at + 1);
  table.count.store(at + 1, std::memory_order_release);
  return at + 1;
}

}  // namespace tprof::tables
