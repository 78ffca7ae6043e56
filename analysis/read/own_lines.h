// A fast parser for the most frequent lines exactly as the library writes them: calls, device times
// and computation, with fields in the contract's order and without escapes. For any other line
// these return false, and simdjson reads it. Both give the same result.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "read/events.h"

namespace tprof::read {

// Parses the lines of one file. Most lines begin and end like an earlier one: that part is only
// compared, not parsed.
class OwnLines {
 public:
  // A collective, message or copy that returned without an error. `arguments`: the text after "op"
  // to the end of the line, for callers that write it again.
  bool call(std::string_view line, Event& e, std::string_view* arguments = nullptr);
  bool device_time(std::string_view line, DeviceTime& t, std::string_view* arguments = nullptr);
  static bool busy(std::string_view line, Busy& b);

  static constexpr std::size_t kPlaces = 64;

 private:
  struct Head {
    std::string text{};  // up to the thread id; empty: unused
    std::string name{};
    text::Kept function{};  // the name, unless it is for people
    Bucket bucket = Bucket::ALLGATHER;
    bool timed = false;  // a device time's
  };
  struct Args {
    std::string text{};  // from after the call's number to the end of the line; empty: unused
    Event event{};       // the fields that are equal in all such lines
  };
  const Head* head_of(std::string_view line, bool timed);  // null: not as expected

  // Indexed by a hash; collisions replace the older entry.
  std::array<Head, kPlaces> heads_{};
  std::array<Args, kPlaces> args_{};
  text::Kept timed_{};  // the function of a device time with a name for people
};

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
