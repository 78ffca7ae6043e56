#include "interpose/device/contexts.h"

#include "interpose/base/held_signals.h"
#include "interpose/device/pairs.h"
#include "interpose/device/streams.h"
#include "interpose/device/timing.h"
#include "interpose/real/driver_events.h"
#include "interpose/real/stream_gates.h"
#include "interpose/record/thread.h"

namespace tprof::device {
namespace {

template <typename F>
void each_pool(std::uint32_t pools, F&& f) {
  for (Pool& pool : g_pools) {
    if ((pools >> number_of(pool) & 1) != 0) f(pool);
  }
}

// `or_not_known`: also pools without events yet, which may belong to the device.
std::uint32_t pools_of(int device, CUcontext context, bool or_not_known) {
  std::uint32_t found = 0;
  for (const Pool& pool : g_pools) {
    if (pool.context() == nullptr) continue;
    const int its = pool.device();
    const bool goes = context != nullptr
                          ? pool.context() == context
                          : its == device || (its == Pool::kNotKnown && or_not_known);
    if (goes) found |= 1U << number_of(pool);
  }
  return found;
}

}  // namespace

ContextsGo::ContextsGo(int device, CUcontext context, bool surely)
    : device_(device), context_(context) {
  constexpr std::uint32_t kLongestMs = 100;
  const KeepErrno keep_errno;
  const bool own = context == nullptr && device < 0;
  if (own && !event_driver::device(device_)) device_ = t_thread.device;
  pools_ = pools_of(device_, context, true);
  if (pools_ == 0) return;
  if (surely) own_thread::read_now(kLongestMs);
  streams::stand_back(true);
  stream_gates::let_all_leave();
  each_pool(pools_, [&](Pool& pool) {
    if (!pool.gate().close()) stuck_ |= 1U << number_of(pool);
  });
}

ContextsGo::~ContextsGo() {
  if (pools_ == 0) return;
  each_pool(pools_ & ~shut_, [](Pool& pool) { pool.gate().open(); });
  streams::stand_back(false);
}

void ContextsGo::gone() {
  streams::begin_epoch();
  shut_ = (pools_ & pools_of(device_, context_, false)) | stuck_;
  if (shut_ == 0) return;
  streams::all_gone();
  each_pool(shut_, [](Pool& pool) { pool.abandon(); });
}

}  // namespace tprof::device
