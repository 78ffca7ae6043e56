#include "interpose/timing/waits.h"

#include <algorithm>
#include <iterator>

#include "interpose/driver/events.h"
#include "interpose/graphs/graphs.h"
#include "interpose/thread/thread.h"
#include "interpose/timing/pairs.h"
#include "interpose/timing/recent.h"

namespace tprof::timing::waits {
namespace {

constinit Recent<Behind, 4096> g_events{};
constinit Recent<Behind, 256> g_streams{};

Behind known(cudaEvent_t event) {
  Behind b;
  return g_events.get(reinterpret_cast<std::uintptr_t>(event), b) ? b : Behind{};
}
Behind known(std::uint64_t stream) {
  Behind b;
  return g_streams.get(stream, b) ? b : Behind{};
}

}  // namespace

std::uint64_t id_of(cudaStream_t stream) {
  constexpr std::uint64_t kLegacy = 1;
  constexpr std::uint64_t kPerThread = 2;
  const auto handle = reinterpret_cast<std::uintptr_t>(stream);
  if (handle > kPerThread) return handle;
  const Thread& t = t_thread;
  const auto device = static_cast<std::uint64_t>(t.device) << 8;
  if (handle != kPerThread) return kLegacy | device;
  const std::uint64_t tid = t.area == nullptr ? 0 : t.area->tid.load(std::memory_order_relaxed);
  return kPerThread | device | tid << 24;
}

void called(cudaStream_t stream, const Behind& behind) {
  g_streams.put(id_of(stream), behind);
}

void recorded(cudaEvent_t event, cudaStream_t stream) {
  if (!by_events()) return;
  const bool captures = graphs::captured_into(stream) != nullptr;
  const Behind b = captures ? Behind{} : known(id_of(stream));
  g_events.put(reinterpret_cast<std::uintptr_t>(event), b);
}

TimedCall start(cudaStream_t stream, cudaEvent_t event) {
  if (!by_events() || graphs::captured_into(stream) != nullptr) return {};
  const Behind b = known(event);
  const std::uint64_t id = id_of(stream);
  // What is in the stream itself, or came from there, it does not wait for.
  if (b.call == 0 || b.stream == id) return {};
  if (std::find(std::begin(b.through), std::end(b.through), id) != std::end(b.through)) return {};
  const TimedCall timed = begin_pair(stream);
  if (timed.pair == nullptr) return {};
  Pair& pair = *timed.pair;
  pair.kind = Kind::wait;
  pair.wait.number = next_number();
  pair.wait.stream = id;
  pair.wait.call = b.call;
  std::copy(std::begin(b.through), std::end(b.through), pair.wait.through);
  // From here on it stands behind the stream too. A chain that is longer is not followed.
  Behind mine = b;
  auto* place = std::find(std::begin(mine.through), std::end(mine.through), std::uint64_t{0});
  if (place == std::end(mine.through)) {
    mine = {};
  } else {
    *place = id;
  }
  g_streams.put(id, mine);
  return timed;
}

void stop(const TimedCall& timed, bool ok) {
  if (timed.pair == nullptr) return;
  ok ? void(end_pair(*timed.pair)) : drop(timed);
}

Behind behind(cudaEvent_t event) {
  return known(event);
}
Behind behind(cudaStream_t stream) {
  return graphs::captured_into(stream) != nullptr ? Behind{} : known(id_of(stream));
}

void waited(const Behind& behind, std::uint64_t start_ns) {
  const std::uint64_t end_ns = now_ns();
  if (behind.call == 0) return;
  Pair* pair = g_pools[behind.pool].take();
  if (pair == nullptr) return;
  pair->kind = Kind::host;
  pair->wait = {{next_number(), 0, start_ns, start_ns, end_ns}, behind.call, {}};
  std::copy(std::begin(behind.through), std::end(behind.through), pair->wait.through);
  pair->to_read.store(true, std::memory_order_release);
}

// For all streams of the thread's device.
void waited_for_device(std::uint64_t start_ns) {
  g_streams.each([&](const Behind& b) {
    if (b.call != 0 && event_driver::is_in(g_pools[b.pool].context())) waited(b, start_ns);
  });
}

}  // namespace tprof::timing::waits
