// Checks our declarations against the vendor's headers, if the build has them. One of these headers
// has the older records.
#include "interpose/device/cupti_abi.h"

#if __has_include(<cupti.h>) && __has_include(<cupti_activity_deprecated.h>)
#include <cupti.h>
#include <cupti_activity_deprecated.h>

namespace tprof::cupti {
namespace {

constexpr bool is(ActivityKind ours, CUpti_ActivityKind theirs) {
  return static_cast<int>(ours) == static_cast<int>(theirs);
}
static_assert(is(ActivityKind::memcpy, CUPTI_ACTIVITY_KIND_MEMCPY) &&
              is(ActivityKind::driver, CUPTI_ACTIVITY_KIND_DRIVER) &&
              is(ActivityKind::runtime, CUPTI_ACTIVITY_KIND_RUNTIME) &&
              is(ActivityKind::kernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) &&
              is(ActivityKind::peer_memcpy, CUPTI_ACTIVITY_KIND_MEMCPY2) &&
              is(ActivityKind::external, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION));
static_assert(kOurs == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2);
static_assert(kTaken == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);

template <typename Ours, typename... Theirs>
constexpr bool kSameWork = ((offsetof(Ours, kind) == offsetof(Theirs, kind) &&
                             offsetof(Ours, start) == offsetof(Theirs, start) &&
                             offsetof(Ours, end) == offsetof(Theirs, end) &&
                             offsetof(Ours, device) == offsetof(Theirs, deviceId) &&
                             offsetof(Ours, call) == offsetof(Theirs, correlationId)) &&
                            ...);
template <typename... Theirs>
constexpr bool kSameKernel = kSameWork<Kernel, Theirs...> &&
                             ((offsetof(Kernel, name) == offsetof(Theirs, name)) && ...);

static_assert(offsetof(External, whose) ==
                  offsetof(CUpti_ActivityExternalCorrelation, externalKind) &&
              offsetof(External, id) == offsetof(CUpti_ActivityExternalCorrelation, externalId) &&
              offsetof(External, call) ==
                  offsetof(CUpti_ActivityExternalCorrelation, correlationId));
static_assert(kSameWork<Copy, CUpti_ActivityMemcpy, CUpti_ActivityMemcpy3, CUpti_ActivityMemcpy4,
                        CUpti_ActivityMemcpy5>);
static_assert(kSameWork<PeerCopy, CUpti_ActivityMemcpyPtoP, CUpti_ActivityMemcpyPtoP2,
                        CUpti_ActivityMemcpyPtoP3, CUpti_ActivityMemcpyPtoP4>);
static_assert(kSameKernel<CUpti_ActivityKernel4, CUpti_ActivityKernel5, CUpti_ActivityKernel6,
                          CUpti_ActivityKernel7, CUpti_ActivityKernel8, CUpti_ActivityKernel9>);
#if CUPTI_API_VERSION >= 130000
static_assert(kSameWork<Copy, CUpti_ActivityMemcpy6> && kSameKernel<CUpti_ActivityKernel10>);
#endif

}  // namespace
}  // namespace tprof::cupti
#endif
