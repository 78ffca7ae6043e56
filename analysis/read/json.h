// Typed access to the fields of one line. A field that is not as the contract says throws Malformed
// with its name; the caller knows file and offset.
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

// Returns the object that a line is. Throws Malformed for anything else.
object object_in(simdjson::dom::parser& parser, std::string_view line);

// Missing and null are the same here: both mean that there is no value.
std::optional<element> find(const object& o, std::string_view key);

std::int64_t integer(const object& o, std::string_view key);
std::int64_t integer_or(const object& o, std::string_view key, std::int64_t absent);
std::optional<std::int64_t> optional_integer(const object& o, std::string_view key);
// Throws Malformed for a value outside [least, most].
std::int64_t integer_in(const object& o, std::string_view key, std::int64_t least,
                        std::int64_t most);
std::optional<std::int64_t> optional_integer_in(const object& o, std::string_view key,
                                                std::int64_t least, std::int64_t most);
std::uint64_t count(const object& o, std::string_view key);  // 64 bits, unsigned
// A time in microseconds, as nanoseconds.
std::int64_t moment_ns(const object& o, std::string_view key);
long double number(const object& o, std::string_view key);  // any; integers keep all their digits
bool flag(const object& o, std::string_view key);           // absent: false
std::string text(const object& o, std::string_view key);
std::string text_or_empty(const object& o, std::string_view key);
object object_of(const object& o, std::string_view key);
array array_of(const object& o, std::string_view key);
std::vector<object> objects_of(const object& o, std::string_view key);
HostMemory host_memory(const object& o);  // for a copy's line or row; absent: unknown

template <typename Object>
std::uint64_t count_or_0(const Object& o, std::string_view key) {
  return find(o, key) ? count(o, key) : 0;
}

// Throws Malformed if an object, at any depth, has a key twice: JSON readers differ in which one
// they take.
void refuse_repeated_keys(const element& e);

// The bound of a time in nanoseconds, half of int64_t's range so that sums have room. 2^62 ns are
// 146 years.
inline constexpr std::int64_t kLatestNs = std::int64_t{1} << 62;

// Removes trailing white space, which JSON allows and simdjson's raw tokens carry.
std::string_view trimmed(std::string_view token);

// Returns 1042117 for "1042.117". Reads the digits and not a double, which would lose some. Throws
// Malformed if the token is not a number.
std::int64_t micros_to_ns(std::string_view token);

}  // namespace tprof::read
