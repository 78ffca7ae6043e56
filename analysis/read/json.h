// Typed access to the fields of one line. A field that violates the contract throws Malformed with
// its name; the caller adds file and offset.
#pragma once

#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "text/kept.h"

namespace tprof::read {

class Malformed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

// The bound of a time in nanoseconds: half of int64_t's range, so that sums fit. 2^62 ns are 146
// years.
inline constexpr std::int64_t kLatestNs = std::int64_t{1} << 62;

struct Bounds {
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
};
inline constexpr Bounds kNotNegative{.least = 0};

// The name of a JSON type; empty: T is composed of these.
template <typename T>
inline constexpr std::string_view kJsonType = "";
template <>
inline constexpr std::string_view kJsonType<std::int64_t> = "an integer";
template <>
inline constexpr std::string_view kJsonType<std::uint64_t> = "a count";
template <>
inline constexpr std::string_view kJsonType<double> = "a number";
template <>
inline constexpr std::string_view kJsonType<bool> = "true or false";
template <>
inline constexpr std::string_view kJsonType<std::string_view> = "a string";
template <>
inline constexpr std::string_view kJsonType<array> = "an array";
template <>
inline constexpr std::string_view kJsonType<object> = "an object";

// The fields of an object. Lookups in the object's own order are immediate. Missing and null are
// the same: there is no value.
class Fields {
 public:
  Fields() = default;
  Fields(const object& o) : object_(o), last_(o.begin()) {}  // NOLINT(google-explicit-constructor)

  std::optional<element> find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key).has_value(); }
  bool is_null(std::string_view key) const { return object_.at_key(key).is_null(); }
  const object& all() const { return object_; }

  // Sets `to` to a field's value, for any number of pairs. Throws Malformed if it is missing or of
  // another type. A struct is filled by a function fill(const Fields&, T&).
  template <typename T, typename... More>
  void need(std::string_view key, T& to, More&&... more) const {
    set(key, find(key), to);
    if constexpr (sizeof...(more) != 0) need(std::forward<More>(more)...);
  }
  // Leaves `to` as it is if there is no value.
  template <typename T, typename... More>
  void may(std::string_view key, T& to, More&&... more) const {
    if (const auto e = find(key)) set(key, e, to);
    if constexpr (sizeof...(more) != 0) may(std::forward<More>(more)...);
  }
  // The same for integers within these bounds.
  template <typename T>
  void need_in(const Bounds& bounds, std::string_view key, T& to) const {
    need(key, to);
    check(bounds, key, to);
  }
  template <typename T>
  void may_in(const Bounds& bounds, std::string_view key, T& to) const {
    if (has(key)) need_in(bounds, key, to);
  }
  // The same for a time, converted from microseconds to nanoseconds.
  void need_time(std::string_view key, std::int64_t& ns) const { ns = time(key, find(key)); }
  void may_time(std::string_view key, std::int64_t& ns) const {
    if (const auto e = find(key)) ns = time(key, e);
  }
  // Sets `to` to the index of the field's text among these names.
  template <typename E, typename Names, typename Name = std::identity>
  void need_word(std::string_view key, E& to, const Names& names, Name name = {}) const {
    const auto text = get<std::string_view>(key);
    const auto* found = std::ranges::find(names, text, name);
    if (found == std::end(names)) unknown(key, text);
    to = static_cast<E>(found - std::begin(names));
  }
  // Leaves `to` as it is if the word is missing or unknown.
  template <typename E, typename Names>
  void may_word(std::string_view key, E& to, const Names& names) const {
    const auto* found = std::ranges::find(names, get_or<std::string_view>(key));
    if (found != std::end(names)) to = static_cast<E>(found - std::begin(names));
  }
  // Calls f(fields) for each object of an array.
  template <typename F>
  void each(std::string_view key, F&& f) const {
    for (const element e : get<array>(key)) f(Fields(value<object>(key, e)));
  }

  template <typename T>
  T get(std::string_view key) const {
    T value{};
    need(key, value);
    return value;
  }
  template <typename T>
  T get_or(std::string_view key, T value = {}) const {
    may(key, value);
    return value;
  }

 private:
  using Found = std::optional<element>;
  template <typename T>
  static void set(std::string_view key, const Found& e, T& to) {
    if constexpr (!kJsonType<T>.empty()) {
      if (!e || e->get(to) != simdjson::SUCCESS) expected(kJsonType<T>, key);
    } else if constexpr (std::is_convertible_v<T, std::string>) {
      to = value<std::string_view>(key, e);
    } else if constexpr (requires { to.emplace_back(); }) {
      for (const element one : value<array>(key, e)) {
        fill(Fields(value<object>(key, one)), to.emplace_back());
      }
    } else if constexpr (std::is_same_v<T, std::map<std::string, std::uint64_t>>) {
      for (const auto [name, n] : value<object>(key, e)) set(key, n, to[std::string(name)]);
    } else if constexpr (requires { to.emplace(); }) {
      set(key, e, to.emplace());
    } else if constexpr (std::is_same_v<T, long double>) {  // integers keep all digits
      std::int64_t whole = 0;
      if (e && e->get(whole) == simdjson::SUCCESS) return void(to = static_cast<T>(whole));
      to = e && e->is_uint64() ? static_cast<T>(value<std::uint64_t>(key, e))
                               : value<double>(key, e);
    } else if constexpr (std::is_same_v<T, Fields>) {
      to = value<object>(key, e);
    } else {
      fill(Fields(value<object>(key, e)), to);
    }
  }
  template <typename T>
  static T value(std::string_view key, const Found& e) {
    T value{};
    set(key, e, value);
    return value;
  }
  static std::int64_t time(std::string_view key, const Found& e);
  static void check(const Bounds& bounds, std::string_view key,
                    const std::optional<std::int64_t>& n);
  [[noreturn]] static void expected(std::string_view what, std::string_view key);
  [[noreturn]] static void unknown(std::string_view key, std::string_view word);

  object object_{};
  mutable object::iterator last_{};  // the last field found
};

// Parses a line as an object; throws Malformed for anything else. `padded`: SIMDJSON_PADDING more
// bytes are readable.
object object_in(simdjson::dom::parser& parser, std::string_view line, bool padded = false);

// Throws Malformed if an object at any depth has a key twice, since JSON readers differ in which
// one they take.
void refuse_repeated_keys(const element& e);

// Removes trailing white space, which simdjson's raw tokens include.
std::string_view trimmed(std::string_view token);

// Returns 1042117 for "1042.117". Reads digits, since a double would lose some. Throws Malformed if
// the token is no number.
std::int64_t micros_to_ns(std::string_view token);

}  // namespace tprof::read
