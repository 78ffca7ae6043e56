// LTTng-UST's tracepoint with a payload as large as a record of ours. Read several times by LTTng's
// own headers, which is how it is made.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER tprof_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_call.h"

#if !defined(TPROF_BENCH_LTTNG_CALL_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define TPROF_BENCH_LTTNG_CALL_H

#include <lttng/tracepoint.h>
#include <stdint.h>

// One array of 64 bytes: LTTng copies it at once, as we do.
LTTNG_UST_TRACEPOINT_EVENT(tprof_bench, call, LTTNG_UST_TP_ARGS(const uint8_t*, record),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_array(uint8_t, record, record, 64)))

#endif

#include <lttng/tracepoint-event.h>
