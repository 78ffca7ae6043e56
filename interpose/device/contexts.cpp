#include "interpose/device/contexts.h"

#include <algorithm>

#include "interpose/base/held_signals.h"
#include "interpose/device/mode.h"
#include "interpose/device/pairs.h"
#include "interpose/device/timing.h"
#include "interpose/real/driver_events.h"
#include "interpose/real/stream_gates.h"
#include "interpose/record/thread.h"

namespace tprof::device {

ContextsGo::ContextsGo(int device, CUcontext context, bool surely) {
  constexpr std::uint32_t kLongestMs = 100;
  const KeepErrno keep_errno;
  const bool current = context == nullptr && device < 0;
  if (current && !event_driver::device(device)) device = t_thread.device;
  has_events_ = std::any_of(g_pools, g_pools + kPools, [&](const Pool& pool) {
    return context != nullptr ? pool.context() == context
                              : pool.device() == device && pool.context() != nullptr;
  });
  if (!has_events_) return;
  if (surely) own_thread::read_now(kLongestMs);
  g_contexts.close();
  stream_gates::let_all_leave();
}

ContextsGo::~ContextsGo() {
  if (has_events_ && !gone_) g_contexts.open();
}

void ContextsGo::gone() {
  if (!has_events_) return;
  gone_ = true;
  for (Pool& pool : g_pools) {
    for (std::uint32_t i = 0; i < pool.made(); ++i) {
      Pair& pair = pool.pair(i);
      const bool unread = pair.to_read.exchange(false);
      if (unread && pair.kind == Kind::call) lose(TimingLost::unread, pair.of);
    }
  }
  give_up("the program has destroyed a context of CUDA");
}

}  // namespace tprof::device
