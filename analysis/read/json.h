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
std::uint64_t count(const object& o, std::string_view key);  // 64 bits, unsigned
bool flag(const object& o, std::string_view key);            // absent: false
std::string text(const object& o, std::string_view key);
std::string text_or_empty(const object& o, std::string_view key);
object object_of(const object& o, std::string_view key);
array array_of(const object& o, std::string_view key);
std::vector<object> objects_of(const object& o, std::string_view key);

// "1042.117" as 1042117. The digits are read, never a double: it would lose some. Throws Malformed
// for what is not a number.
std::int64_t micros_to_ns(std::string_view token);

}  // namespace tprof::read
