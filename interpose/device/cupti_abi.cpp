// Checks our declarations against the vendor's headers, if the build has them. One of these headers
// keeps the older records.
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

#define SAME_WORK(ours, theirs)                                         \
  static_assert(offsetof(ours, kind) == offsetof(theirs, kind) &&       \
                offsetof(ours, start) == offsetof(theirs, start) &&     \
                offsetof(ours, end) == offsetof(theirs, end) &&         \
                offsetof(ours, device) == offsetof(theirs, deviceId) && \
                offsetof(ours, call) == offsetof(theirs, correlationId))
#define SAME_KERNEL(theirs)  \
  SAME_WORK(Kernel, theirs); \
  static_assert(offsetof(Kernel, name) == offsetof(theirs, name))

static_assert(offsetof(External, whose) ==
                  offsetof(CUpti_ActivityExternalCorrelation, externalKind) &&
              offsetof(External, id) == offsetof(CUpti_ActivityExternalCorrelation, externalId) &&
              offsetof(External, call) ==
                  offsetof(CUpti_ActivityExternalCorrelation, correlationId));
SAME_WORK(Copy, CUpti_ActivityMemcpy);
SAME_WORK(Copy, CUpti_ActivityMemcpy3);
SAME_WORK(Copy, CUpti_ActivityMemcpy4);
SAME_WORK(Copy, CUpti_ActivityMemcpy5);
SAME_WORK(PeerCopy, CUpti_ActivityMemcpyPtoP);
SAME_WORK(PeerCopy, CUpti_ActivityMemcpyPtoP2);
SAME_WORK(PeerCopy, CUpti_ActivityMemcpyPtoP3);
SAME_WORK(PeerCopy, CUpti_ActivityMemcpyPtoP4);
SAME_KERNEL(CUpti_ActivityKernel4);
SAME_KERNEL(CUpti_ActivityKernel5);
SAME_KERNEL(CUpti_ActivityKernel6);
SAME_KERNEL(CUpti_ActivityKernel7);
SAME_KERNEL(CUpti_ActivityKernel8);
SAME_KERNEL(CUpti_ActivityKernel9);
#if CUPTI_API_VERSION >= 130000
SAME_WORK(Copy, CUpti_ActivityMemcpy6);
SAME_KERNEL(CUpti_ActivityKernel10);
#endif

}  // namespace
}  // namespace tprof::cupti
#endif
