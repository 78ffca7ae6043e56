// An LTTng-UST tracepoint with a payload as large as our records. LTTng's own headers read this
// file several times to generate its code.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER tprof_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_call.h"

#if !defined(TPROF_BENCH_LTTNG_CALL_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define TPROF_BENCH_LTTNG_CALL_H

#include <lttng/tracepoint.h>
#include <stdint.h>

// The payload is one array of 64 bytes, which LTTng copies at once, as we do.
LTTNG_UST_TRACEPOINT_EVENT(tprof_bench, call, LTTNG_UST_TP_ARGS(const uint8_t*, record),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_array(uint8_t, record, record, 64)))

#endif

#include <lttng/tracepoint-event.h>
