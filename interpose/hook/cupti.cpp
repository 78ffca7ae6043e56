// The wrappers of the calls that make a program CUPTI's client. CUPTI has only one, so we give it
// up before the call, for good. They are declared without the vendor's header, which the build may
// lack.
#include <cstring>

#include "interpose/device/cupti_abi.h"
#include "interpose/device/cupti_client.h"
#include "interpose/device/timing.h"
#include "interpose/hook/wrapper.h"

namespace cupti = tprof::cupti;

namespace {

// CUPTI may still have a buffer of ours, and give it, with the program's records, to the program's
// callback, which would free memory it did not allocate. So the callback gets its own buffer with
// the same content.
constinit std::atomic<cupti::Requested> g_requested{nullptr};
constinit std::atomic<cupti::Completed> g_completed{nullptr};
void completed(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t size,
               std::size_t valid) {
  const auto theirs = g_completed.load(std::memory_order_acquire);
  if (!cupti::buffers::is_ours(buffer)) return theirs(context, stream, buffer, size, valid);
  std::uint8_t* own = nullptr;
  std::size_t own_size = 0;
  std::size_t most_records = 0;
  g_requested.load(std::memory_order_acquire)(&own, &own_size, &most_records);
  if (own == nullptr) return;
  const bool fits = valid <= own_size;
  if (fits) std::memcpy(own, buffer, valid);
  theirs(context, stream, own, own_size, fits ? valid : 0);
}

}  // namespace

TPROF_TYPED(cupti::Result, cuptiSubscribe, (void** subscriber, void* callback, void* data), {
  tprof::device::make_way();
  return real(subscriber, callback, data);
})

TPROF_TYPED(cupti::Result, cuptiSubscribe_v2,
            (void** subscriber, void* callback, void* data, void* parameters), {
              tprof::device::make_way();
              return real(subscriber, callback, data, parameters);
            })

TPROF_TYPED(cupti::Result, cuptiActivityRegisterCallbacks,
            (cupti::Requested requested, cupti::Completed theirs), {
              tprof::device::make_way();
              if (requested == nullptr || theirs == nullptr || !cupti::buffers::any_out())
                return real(requested, theirs);
              g_requested.store(requested, std::memory_order_release);
              g_completed.store(theirs, std::memory_order_release);
              return real(requested, completed);
            })
