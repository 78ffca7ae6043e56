// Reads the lines that a trace has most of without JSON's generality, as the library writes them:
// calls, device times and computation, their fields in the order of the contract, numbers and names
// without escapes. Whatever else a line is or has, these return false, and simdjson reads it. It
// would read alike what they read.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "read/events.h"

namespace tprof::read {

// Lines of one file, most of which begin and end like one before: such a part is compared, and its
// meaning is known.
class OwnLines {
 public:
  // A collective, a transfer or a copy that returned without an error. `arguments`: what follows
  // "op" to the end of the line, for who writes it again.
  bool call(std::string_view line, Event& e, std::string_view* arguments = nullptr);
  bool device_time(std::string_view line, DeviceTime& t, std::string_view* arguments = nullptr);
  static bool busy(std::string_view line, Busy& b);

  static constexpr std::size_t kPlaces = 64;

 private:
  struct Head {
    std::string text{};  // up to the thread's number; empty: none
    std::string name{};
    text::Kept function{};  // the name, unless it is one for people
    Bucket bucket = Bucket::ALLGATHER;
    bool timed = false;  // of a device time
  };
  struct Args {
    std::string text{};  // from behind the call's number to the end of the line; empty: none
    Event event{};       // what is the same for all such lines
  };
  const Head* head_of(std::string_view line, bool timed);  // null: it is not as expected

  // By a hash of what tells them apart. One takes the place of another.
  std::array<Head, kPlaces> heads_{};
  std::array<Args, kPlaces> args_{};
  text::Kept timed_{};  // the function of a device time with a name for people
};

// Reads the arguments of those lines that a trace has most of, in the order in which the library
// writes them. `From` is the line's JSON (json.h) or its text (own_lines.cpp): both read the same.

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
  from.may("computes", t.computes);
  from.may_time("waited", t.waited_ns);
}

template <typename From>
void fill_busy(From& from, Busy& b) {
  from.need("device", b.device);
  from.may("unsure", b.unsure);
}

}  // namespace tprof::read
