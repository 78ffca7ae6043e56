// A fast parser for the most frequent lines exactly as the library writes them: calls, device times
// and computation, with fields in the contract's order and without escapes. For any other line
// these return false, and simdjson reads it. Both give the same result.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "read/events.h"

namespace tprof::read {

namespace own_lines {
// A collective, message or copy that returned without an error. `arguments`: from where they begin.
bool call(std::string_view line, Event& e, std::string_view* arguments = nullptr);
bool device_time(std::string_view line, DeviceTime& t, std::string_view* arguments = nullptr);
bool busy(std::string_view line, Busy& b);
}  // namespace own_lines

// Reads the arguments of the most frequent lines in the order in which the library writes them.
// `From` is JSON (json.h) or text (own_lines.cpp).

// Takes a call's arguments after its communicator and number.
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
  from.may("computes", t.computes);
  from.may_time("waited", t.waited_ns);
}

template <typename From>
void fill_busy(From& from, Busy& b) {
  from.need("device", b.device);
  from.may("unsure", b.unsure);
}

}  // namespace tprof::read
