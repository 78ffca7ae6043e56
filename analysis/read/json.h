// Typed access to the fields of one line. What is not as the contract says throws Malformed with
// the name of the field; the caller knows file and offset.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "interpose/format/host_memory.h"

namespace tprof::read {

class Malformed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

// Missing and null are the same here: both mean that there is no value.
std::optional<element> find(const object& o, std::string_view key);

std::int64_t integer(const object& o, std::string_view key);
std::int64_t integer_or(const object& o, std::string_view key, std::int64_t absent);
std::optional<std::int64_t> optional_integer(const object& o, std::string_view key);
// Within [least, most], or Malformed.
std::int64_t integer_in(const object& o, std::string_view key, std::int64_t least,
                        std::int64_t most);
std::optional<std::int64_t> optional_integer_in(const object& o, std::string_view key,
                                                std::int64_t least, std::int64_t most);
std::uint64_t count(const object& o, std::string_view key);  // 64 bits, unsigned
long double number(const object& o, std::string_view key);   // any, integers with all their digits
bool flag(const object& o, std::string_view key);            // absent: false
std::string text(const object& o, std::string_view key);
std::string text_or_empty(const object& o, std::string_view key);
object object_of(const object& o, std::string_view key);
array array_of(const object& o, std::string_view key);
std::vector<object> objects_of(const object& o, std::string_view key);
HostMemory host_memory(const object& o);  // of a copy's line or row; absent: unknown

// A key that stands twice in an object, at any depth: JSON readers differ in which one they take.
void refuse_repeated_keys(const element& e);

// The bounds of a time in nanoseconds: the sum of two is no overflow. 2^62 ns are 146 years.
inline constexpr std::int64_t kLatestNs = std::int64_t{1} << 62;

// White space that JSON allows behind a token; simdjson's raw tokens carry it.
std::string_view trimmed(std::string_view token);

// "1042.117" as 1042117. The digits are read, never a double: it would lose some. Throws Malformed
// for what is not a number.
std::int64_t micros_to_ns(std::string_view token);

}  // namespace tprof::read
