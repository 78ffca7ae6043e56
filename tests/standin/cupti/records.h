// Activity records: kinds that are asked for, the buffers that hold them, and what a call is part
// of.
#pragma once

#include <cupti.h>

#include <cstdint>

namespace standin::cupti {

// One client at a time, as before CUDA 13.2.
bool subscribe(CUpti_SubscriberHandle* handle);
bool unsubscribe(CUpti_SubscriberHandle handle);

void callbacks(CUpti_BuffersCallbackRequestFunc request,
               CUpti_BuffersCallbackCompleteFunc complete);
void client_clock(CUpti_TimestampCallbackFunc callback);  // that records' times are of
bool enable(CUpti_ActivityKind kind, bool on);

// Hands over what was written. The buffer that was requested last stays here until then, whoever
// requested it.
void flush();
std::size_t take_dropped();

void push(CUpti_ExternalCorrelationKind kind, uint64_t id);
bool pop(CUpti_ExternalCorrelationKind kind, uint64_t* id);

std::size_t size_of(const CUpti_Activity& record);  // 0: not a kind that is written here

}  // namespace standin::cupti
