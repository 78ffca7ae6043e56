#include "interpose/device/comm_order.h"

#include <atomic>

namespace tprof::device::comm_order {
namespace {

// The last call of a communicator. Calls of one communicator are made by one thread at a time, or
// NCCL itself does not know their order.
struct Last {
  std::atomic<std::uint32_t> comm;
  std::atomic<std::uint64_t> stream;
  std::atomic<std::uint64_t> number;
  std::atomic<bool> several;
};
constexpr std::uint32_t kPlaces = 1024;
constinit Last g_last[kPlaces]{};

}  // namespace

bool on_several_streams(std::uint32_t comm) {
  const Last& last = g_last[comm % kPlaces];
  return last.comm.load(std::memory_order_relaxed) == comm &&
         last.several.load(std::memory_order_relaxed);
}

InOrder enqueued(std::uint32_t comm, std::uint64_t stream, std::uint64_t number) {
  if (comm == 0) return {};
  Last& last = g_last[comm % kPlaces];
  const bool known = last.comm.exchange(comm, std::memory_order_relaxed) == comm;
  const std::uint64_t stream_before = last.stream.exchange(stream, std::memory_order_relaxed);
  const std::uint64_t number_before = last.number.exchange(number, std::memory_order_relaxed);
  if (!known) last.several.store(false, std::memory_order_relaxed);
  if (!known || stream_before == stream) return {comm, InOrder::kNone};
  last.several.store(true, std::memory_order_relaxed);
  return {comm, number_before};
}

void after_fork() {
  for (Last& last : g_last) last.comm.store(0, std::memory_order_relaxed);
}

}  // namespace tprof::device::comm_order
