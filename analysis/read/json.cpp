#include "read/json.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>

#include "read/in_order.h"

namespace tprof::read {
namespace {

[[noreturn]] void expected(std::string_view what, std::string_view key) {
  throw Malformed("expected " + std::string(what) + " in \"" + std::string(key) + "\"");
}

template <typename T, typename Object>
T required(const Object& o, std::string_view key, std::string_view what) {
  T v{};
  const auto found = find(o, key);
  if (!found || found->get(v) != simdjson::SUCCESS) expected(what, key);
  return v;
}

std::int64_t within(std::int64_t v, std::string_view key, std::int64_t least, std::int64_t most) {
  if (v >= least && v <= most) return v;
  expected("an integer from " + std::to_string(least) + " to " + std::to_string(most), key);
}

// A cheap filter of keys: false means that the key was not seen before, which is nearly always so.
class SeenKeys {
 public:
  bool maybe(std::string_view key) {
    // The hash takes its length and its two ends.
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    const std::size_t n = std::min(key.size(), sizeof first);
    std::memcpy(&first, key.data(), n);
    std::memcpy(&last, key.data() + key.size() - n, n);
    const std::uint64_t hash = (first ^ std::rotl(last, 29) ^ key.size()) * 0x9e3779b97f4a7c15;
    std::uint64_t& part = seen_[hash >> 48 & (seen_.size() - 1)];
    const std::uint64_t bit = std::uint64_t{1} << (hash >> 58);
    const bool maybe = (part & bit) != 0;
    part |= bit;
    return maybe;
  }

 private:
  std::array<std::uint64_t, 32> seen_{};
};

}  // namespace

object object_in(simdjson::dom::parser& parser, std::string_view line) {
  object o;
  if (parser.parse(line.data(), line.size()).get(o) == simdjson::SUCCESS) return o;
  throw Malformed("expected one JSON object on this line");
}

std::optional<element> InOrder::find(std::string_view key) const {
  const auto is_at = [&](const object::iterator& at) {
    if (at.key() != key) return false;
    last_ = at;
    return true;
  };
  const auto value = [&] {
    const element e = last_.value();
    return e.is_null() ? std::nullopt : std::optional(e);
  };
  for (auto at = last_; at != object_.end(); ++at) {
    if (is_at(at)) return value();
  }
  const auto behind = last_;
  for (auto at = object_.begin(); at != behind; ++at) {
    if (is_at(at)) return value();
  }
  return std::nullopt;
}

std::optional<element> find(const object& o, std::string_view key) {
  element e;
  if (o.at_key(key).get(e) != simdjson::SUCCESS || e.is_null()) return std::nullopt;
  return e;
}

std::int64_t integer(const object& o, std::string_view key) {
  return required<std::int64_t>(o, key, "an integer");
}

std::int64_t integer_or(const object& o, std::string_view key, std::int64_t absent) {
  return optional_integer(o, key).value_or(absent);
}

std::optional<std::int64_t> optional_integer(const object& o, std::string_view key) {
  if (!find(o, key)) return std::nullopt;
  return integer(o, key);
}

std::optional<std::int64_t> optional_integer(const InOrder& o, std::string_view key) {
  if (!find(o, key)) return std::nullopt;
  return required<std::int64_t>(o, key, "an integer");
}

std::int64_t integer_in(const object& o, std::string_view key, std::int64_t least,
                        std::int64_t most) {
  return within(integer(o, key), key, least, most);
}

std::int64_t integer_in(const InOrder& o, std::string_view key, std::int64_t least,
                        std::int64_t most) {
  return within(required<std::int64_t>(o, key, "an integer"), key, least, most);
}

std::optional<std::int64_t> optional_integer_in(const object& o, std::string_view key,
                                                std::int64_t least, std::int64_t most) {
  if (!find(o, key)) return std::nullopt;
  return integer_in(o, key, least, most);
}

std::uint64_t count(const object& o, std::string_view key) {
  return required<std::uint64_t>(o, key, "a count");
}

std::uint64_t count(const InOrder& o, std::string_view key) {
  return required<std::uint64_t>(o, key, "a count");
}

long double number(const object& o, std::string_view key) {
  const auto found = find(o, key);
  std::int64_t whole = 0;
  std::uint64_t positive = 0;
  if (found && found->get(whole) == simdjson::SUCCESS) return static_cast<long double>(whole);
  if (found && found->get(positive) == simdjson::SUCCESS) return static_cast<long double>(positive);
  return required<double>(o, key, "a number");
}

bool flag(const object& o, std::string_view key) {
  return find(o, key) && required<bool>(o, key, "true or false");
}

std::string text(const object& o, std::string_view key) {
  return std::string(required<std::string_view>(o, key, "a string"));
}

std::string_view text(const InOrder& o, std::string_view key) {
  return required<std::string_view>(o, key, "a string");
}

std::string text_or_empty(const object& o, std::string_view key) {
  return find(o, key) ? text(o, key) : std::string();
}

object object_of(const object& o, std::string_view key) {
  return required<object>(o, key, "an object");
}

array array_of(const object& o, std::string_view key) {
  return required<array>(o, key, "an array");
}

std::vector<object> objects_of(const object& o, std::string_view key) {
  std::vector<object> all;
  for (const element e : array_of(o, key)) {
    if (e.get(all.emplace_back()) != simdjson::SUCCESS) expected("objects", key);
  }
  return all;
}

HostMemory host_memory(const object& o) {
  const std::string name = text_or_empty(o, "host_memory");
  const auto* found = std::ranges::find(kHostMemoryNames, name);
  if (found == std::end(kHostMemoryNames)) return HostMemory::unknown;
  return static_cast<HostMemory>(found - kHostMemoryNames);
}

// Sorts the keys where one may be repeated, since an object may have as many as fit in a line.
void refuse_repeated_keys(const element& e) {
  const auto look_into = [](const element& value) {
    if (value.is_array() || value.is_object()) refuse_repeated_keys(value);
  };
  array values;
  object fields;
  if (e.get(values) == simdjson::SUCCESS) {
    for (const element value : values) look_into(value);
  } else if (e.get(fields) == simdjson::SUCCESS) {
    SeenKeys seen;
    bool maybe = false;
    for (const auto field : fields) {
      look_into(field.value);
      maybe = seen.maybe(field.key) || maybe;
    }
    if (!maybe) return;
    std::vector<std::string_view> keys;
    for (const auto field : fields) keys.push_back(field.key);
    std::ranges::sort(keys);
    const auto twice = std::ranges::adjacent_find(keys);
    if (twice != keys.end()) throw Malformed("\"" + std::string(*twice) + "\" stands twice");
  }
}

std::string_view trimmed(std::string_view token) {
  while (!token.empty() &&
         std::string_view(" \t\r\n").find(token.back()) != std::string_view::npos) {
    token.remove_suffix(1);
  }
  return token;
}

std::int64_t moment_ns(const object& o, std::string_view key) {
  constexpr double kMostMicros = 4e15;
  double micros = 0;
  const auto e = find(o, key);
  if (!e || e->get(micros) != simdjson::SUCCESS || !(std::abs(micros) < kMostMicros)) {
    throw Malformed("expected a time in \"" + std::string(key) + "\"");
  }
  return std::llround(micros * 1000);
}

std::int64_t micros_to_ns(std::string_view token) {
  const auto malformed = [&] {
    return Malformed("expected a time in microseconds, found '" + std::string(token) + "'");
  };
  token = trimmed(token);
  const bool negative = !token.empty() && token.front() == '-';
  const char* at = token.data() + (negative ? 1 : 0);
  const char* end = token.data() + token.size();
  std::uint64_t micros = 0;
  auto [p, error] = std::from_chars(at, end, micros);
  if (error != std::errc() || micros >= kLatestNs / 1000) throw malformed();
  std::int64_t ns = static_cast<std::int64_t>(micros) * 1000;
  if (p != end) {
    if (*p++ != '.' || p == end) throw malformed();
    for (std::int64_t unit = 100; p != end; ++p, unit /= 10) {
      if (*p < '0' || *p > '9') throw malformed();
      ns += unit * (*p - '0');
    }
  }
  return negative ? -ns : ns;
}

}  // namespace tprof::read
