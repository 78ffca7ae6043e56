// The text of a trace on its way to a file. Space is checked once per line, since checking at every
// word would dominate for millions of lines.
#pragma once

#include <simdjson.h>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "read/json.h"

namespace tprof::trace_export {

// Writes "1042.117" for 1042117 and returns the end. It takes at most 24 bytes.
inline char* put_micros(char* at, std::int64_t ns) {
  if (ns < 0) *at++ = '-';
  const std::uint64_t size =
      ns < 0 ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  at = std::to_chars(at, at + 20, size / 1000).ptr;
  const auto rest = static_cast<std::uint32_t>(size % 1000);
  *at++ = '.';
  *at++ = static_cast<char>('0' + rest / 100);
  *at++ = static_cast<char>('0' + rest / 10 % 10);
  *at++ = static_cast<char>('0' + rest % 10);
  return at;
}

inline std::string micros(std::int64_t ns) {
  char text[24];
  return {text, put_micros(text, ns)};
}

class Pen {
 public:
  // The usual limit of a line; longer lines tell line().
  static constexpr std::size_t kLine = 12 * 1024;

  // Begins the next line. `more`: bytes beyond kLine.
  Pen& line(std::size_t more = 0) {
    reserve(kLine + more);
    return *this << ",\n";
  }
  Pen& reserve(std::size_t bytes) {
    if (static_cast<std::size_t>(end_ - at_) < bytes) grow(bytes);
    return *this;
  }

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
  template <std::integral N>
  Pen& operator<<(N n) {
    at_ = std::to_chars(at_, at_ + 20, n).ptr;
    return *this;
  }
  Pen& micros(std::int64_t ns) {
    at_ = put_micros(at_, ns);
    return *this;
  }
  // Writes where and when a slice is.
  Pen& slice(std::int64_t pid, std::int64_t lane, std::int64_t ts_ns, std::int64_t dur_ns) {
    *this << "\"ph\":\"X\",\"pid\":" << pid << ",\"tid\":" << lane << ",\"ts\":";
    return (micros(ts_ns) << ",\"dur\":").micros(dur_ns);
  }

  std::size_t size() const { return static_cast<std::size_t>(at_ - room_.get()); }
  std::string_view text() const { return {room_.get(), size()}; }
  void clear() { at_ = room_.get(); }

 private:
  void grow(std::size_t bytes) {
    const std::size_t used = size();
    const std::size_t all = 2 * (used + bytes);
    std::unique_ptr<char[]> room(new char[all]);  // not zeroed
    if (used != 0) std::memcpy(room.get(), room_.get(), used);
    room_ = std::move(room);
    at_ = room_.get() + used;
    end_ = room_.get() + all;
  }

  std::unique_ptr<char[]> room_;
  char* at_ = nullptr;
  char* end_ = nullptr;
};

// The tokens of an event's JSON fields, some of which may be replaced before it is written again.

inline read::Malformed not_an_object() {
  return read::Malformed("expected one JSON object on this line");
}

// Returns simdjson's value. Throws if the line is not JSON.
template <typename T>
T value_of(simdjson::simdjson_result<T> result) {
  T value;
  if (std::move(result).get(value) != simdjson::SUCCESS) throw not_an_object();
  return value;
}

class EventFields {
 public:
  // Splits an object into fields. simdjson may read bytes after it (padding). Throws Malformed.
  void read(std::string_view object);
  void clear() { fields_.clear(); }

  // Returns the field's token; empty: none. Throws Malformed for a repeated field, since JSON does
  // not say which one counts.
  std::string_view operator[](std::string_view key) const;
  // Replaces or appends a value. An empty one removes the field.
  void set(std::string_view key, std::string value);
  // Appends fields as text.
  void add(std::string text);
  // Returns the fields without braces.
  std::string text() const;

 private:
  struct Field {
    std::string_view key;  // empty: the value is a text of fields
    std::string_view value;
  };
  std::size_t find(std::string_view key) const;  // the number of fields: none

  simdjson::ondemand::parser parser_;
  std::vector<Field> fields_;
  std::deque<std::string> texts_;  // of replaced values
};

}  // namespace tprof::trace_export
