// The commit blocks: how much of a ring file has reached its rank file. There are two, so a kill at
// any instruction leaves one of them whole.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "interpose/format/ring_file.h"

namespace tprof {

// Returns the commit block in force, the one with the higher even generation. Null: neither is
// whole.
inline CommitBlock* committed_block(Head& head) {
  CommitBlock* best = nullptr;
  for (CommitBlock& block : head.commit) {
    const std::uint64_t g = block.generation.load(std::memory_order_acquire);
    if (g == 0 || g % 2 != 0) continue;
    if (best == nullptr || g > best->generation.load(std::memory_order_relaxed)) best = &block;
  }
  return best;
}

// Makes `progress` the state that recovery would start from. Single writer.
inline void commit_progress(Head& head, const Progress& progress) {
  const CommitBlock* current = committed_block(head);
  const std::uint64_t generation =
      current == nullptr ? 0 : current->generation.load(std::memory_order_relaxed);
  CommitBlock& block = current == &head.commit[0] ? head.commit[1] : head.commit[0];
  block.generation.store(generation + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(&block.progress, &progress, sizeof progress);
  block.generation.store(generation + 2, std::memory_order_release);
}

}  // namespace tprof
