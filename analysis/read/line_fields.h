// Reads the arguments of those lines that a trace has most of, in the order in which the library
// writes them. `From` is the line's JSON (json.h) or its text (own_lines.cpp): both read the same.
#pragma once

#include "read/events.h"

namespace tprof::read {

// Takes those of a call that follow its communicator and its number in it.
template <typename From>
void fill_call(From& from, Event& e) {
  bool ignored = false;
  if (is_copy(e.bucket)) {
    e.dtype = "byte";
    from.need("bytes", e.bytes);
    from.may("dtype", e.dtype, "device", e.device);
    from.may_word("host_memory", e.host_memory, kHostMemoryNames);
    e.count = e.bytes;
  } else {
    from.need("count", e.count);
    from.may("dtype", e.dtype);
    from.need("bytes", e.bytes);
    from.may("peer", e.peer, "reduce", e.reduce);
  }
  from.may("stream", e.stream, "sync", ignored, "group", e.group, "in_place", ignored, "site",
           e.site);
}

template <typename From>
void fill_time(From& from, DeviceTime& t) {
  std::int64_t stream = 0;
  from.may("device", t.device, "comm", t.comm, "seq", t.seq, "stream", stream);
  from.need("call_tid", t.thread);
  from.need_time("queued", t.queued_ns);
  from.may("calls", t.calls);
  from.may_time("waited", t.waited_ns);
}

template <typename From>
void fill_busy(From& from, Busy& b) {
  from.need("device", b.device);
  from.may("unsure", b.unsure);
}

}  // namespace tprof::read
