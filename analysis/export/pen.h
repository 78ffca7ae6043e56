// Writes a line of a trace into room of its own, of which the caller knows that it is enough: what
// takes the time of millions of lines is to ask for room at every word.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "export/digits.h"

namespace tprof::trace_export {

class Pen {
 public:
  // No text may be longer; all else of a line is far shorter than the rest of the room.
  static constexpr std::size_t kLongest = 4096;

  template <std::size_t N>
  Pen& operator<<(const char (&literal)[N]) {
    std::memcpy(at_, literal, N - 1);
    at_ += N - 1;
    return *this;
  }
  Pen& operator<<(std::string_view text) {
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
    return *this;
  }
  Pen& operator<<(std::int64_t n) {
    at_ = std::to_chars(at_, at_ + 20, n).ptr;
    return *this;
  }
  Pen& operator<<(std::uint64_t n) {
    at_ = std::to_chars(at_, at_ + 20, n).ptr;
    return *this;
  }
  Pen& micros(std::int64_t ns) {
    at_ = put_micros(at_, ns);
    return *this;
  }
  // The fields of a slice of ours that say where and when it is.
  Pen& slice(std::int64_t pid, std::int64_t lane, std::int64_t ts_ns, std::int64_t dur_ns) {
    *this << "\"ph\":\"X\",\"pid\":" << pid << ",\"tid\":" << lane << ",\"ts\":";
    return (micros(ts_ns) << ",\"dur\":").micros(dur_ns);
  }

  // Appends what was written, and begins again.
  void move_to(std::string& out) {
    out.append(room_, at_);
    at_ = room_;
  }

 private:
  char room_[3 * kLongest];
  char* at_ = room_;
};

}  // namespace tprof::trace_export
