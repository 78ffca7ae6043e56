// A CUPTI whose calls return at once and which never has records.
#include <time.h>

#include <cstddef>
#include <cstdint>

#include "tests/fault/instant/answers.h"

extern "C" {
// NOLINTBEGIN(readability-identifier-naming)
ANSWERS(0, int, cuptiUnsubscribe, void*)
ANSWERS(0, int, cuptiActivityRegisterCallbacks, void*, void*)
ANSWERS(0, int, cuptiActivityEnable, int)
ANSWERS(0, int, cuptiActivityDisable, int)
ANSWERS(0, int, cuptiActivityFlushAll, uint32_t)
ANSWERS(12, int, cuptiActivityGetNextRecord, uint8_t*, size_t,
        void**)  // CUPTI_ERROR_MAX_LIMIT_REACHED
ANSWERS(0, int, cuptiActivityPushExternalCorrelationId, int, uint64_t)
ANSWERS(0, int, cuptiActivityPopExternalCorrelationId, int, uint64_t*)

int cuptiSubscribe(void** subscriber, void*, void*);
int cuptiSubscribe(void** subscriber, void*, void*) {
  static char any;
  *subscriber = &any;
  return 0;
}
int cuptiGetTimestamp(uint64_t* ns);
int cuptiGetTimestamp(uint64_t* ns) {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  *ns = static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
  return 0;
}
// NOLINTEND(readability-identifier-naming)
}
