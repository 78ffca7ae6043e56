// A CUPTI whose calls return at once and which never has records.
#include <time.h>

#include <cstddef>
#include <cstdint>

extern "C" {
// NOLINTBEGIN(readability-identifier-naming)
int cuptiSubscribe(void** subscriber, void*, void*);
int cuptiUnsubscribe(void*);
int cuptiActivityRegisterCallbacks(void*, void*);
int cuptiActivityEnable(int);
int cuptiActivityDisable(int);
int cuptiActivityFlushAll(uint32_t);
int cuptiActivityGetNextRecord(uint8_t*, size_t, void**);
int cuptiActivityPushExternalCorrelationId(int, uint64_t);
int cuptiActivityPopExternalCorrelationId(int, uint64_t*);
int cuptiGetTimestamp(uint64_t*);

int cuptiSubscribe(void** subscriber, void*, void*) {
  static char any;
  *subscriber = &any;
  return 0;
}
int cuptiUnsubscribe(void*) {
  return 0;
}
int cuptiActivityRegisterCallbacks(void*, void*) {
  return 0;
}
int cuptiActivityEnable(int) {
  return 0;
}
int cuptiActivityDisable(int) {
  return 0;
}
int cuptiActivityFlushAll(uint32_t) {
  return 0;
}
int cuptiActivityGetNextRecord(uint8_t*, size_t, void**) {
  return 12;  // CUPTI_ERROR_MAX_LIMIT_REACHED
}
int cuptiActivityPushExternalCorrelationId(int, uint64_t) {
  return 0;
}
int cuptiActivityPopExternalCorrelationId(int, uint64_t*) {
  return 0;
}
int cuptiGetTimestamp(uint64_t* ns) {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  *ns = static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
  return 0;
}
// NOLINTEND(readability-identifier-naming)
}
