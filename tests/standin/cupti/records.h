// Activity records: the enabled kinds, the buffers that hold them, and the external correlation ids
// of calls.
#pragma once

#include <cupti.h>

#include <cstdint>

namespace standin::cupti {

// One client at a time, as before CUDA 13.2.
bool subscribe(CUpti_SubscriberHandle* handle);
bool unsubscribe(CUpti_SubscriberHandle handle);

void callbacks(CUpti_BuffersCallbackRequestFunc request,
               CUpti_BuffersCallbackCompleteFunc complete);
void client_clock(CUpti_TimestampCallbackFunc callback);  // for records' times
bool enable(CUpti_ActivityKind kind, bool on);

// Hands over the records written so far. The current buffer stays here until then, whichever client
// it came from.
void flush();
std::size_t take_dropped();

void push(CUpti_ExternalCorrelationKind kind, uint64_t id);
bool pop(CUpti_ExternalCorrelationKind kind, uint64_t* id);

std::size_t size_of(const CUpti_Activity& record);  // 0: not a kind that is written here

}  // namespace standin::cupti
