#include "read/json.h"

#include <bit>
#include <bitset>
#include <charconv>
#include <cmath>
#include <cstring>

namespace tprof::read {
namespace {

// A cheap filter of keys: false means that the key was not seen before, as is nearly always the
// case.
class SeenKeys {
 public:
  bool maybe(std::string_view key) {
    // The hash is made from its length and both ends.
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    const std::size_t n = std::min(key.size(), sizeof first);
    std::memcpy(&first, key.data(), n);
    std::memcpy(&last, key.data() + key.size() - n, n);
    const std::uint64_t hash = (first ^ std::rotl(last, 29) ^ key.size()) * 0x9e3779b97f4a7c15;
    const bool maybe = seen_[hash >> 53];
    seen_.set(hash >> 53);
    return maybe;
  }

 private:
  std::bitset<2048> seen_;
};

}  // namespace

object object_in(simdjson::dom::parser& parser, std::string_view line, bool padded) {
  object o;
  if (parser.parse(line.data(), line.size(), !padded).get(o) == simdjson::SUCCESS) return o;
  throw Malformed("expected one JSON object on this line");
}

std::optional<element> Fields::find(std::string_view key) const {
  const auto from = last_;
  const auto is_among = [&](object::iterator at, const object::iterator& end) {
    while (at != end && at.key() != key) ++at;
    if (at == end) return false;
    last_ = at;
    return true;
  };
  if (!is_among(from, object_.end()) && !is_among(object_.begin(), from)) return std::nullopt;
  const element e = last_.value();
  return e.is_null() ? std::nullopt : std::optional(e);
}

void Fields::expected(std::string_view what, std::string_view key) {
  throw Malformed("expected " + std::string(what) + " in \"" + std::string(key) + "\"");
}

void Fields::check(const Bounds& bounds, std::string_view key,
                   const std::optional<std::int64_t>& n) {
  if (!n || (*n >= bounds.least && *n <= bounds.most)) return;
  expected("an integer from " + std::to_string(bounds.least) + " to " + std::to_string(bounds.most),
           key);
}
// At most a quarter of the largest base_time_ns, so that a base plus a few of these can't overflow.
std::int64_t Fields::time(std::string_view key, const Found& e) {
  constexpr double kLatestMicros = static_cast<double>(kLatestNs) / 4000;
  double micros = 0;
  const bool number = e && e->get(micros) == simdjson::SUCCESS;
  if (!number || !(std::abs(micros) <= kLatestMicros)) expected("a time", key);
  return std::llround(micros * 1000);
}

void Fields::unknown(std::string_view key, std::string_view word) {
  throw Malformed("unknown " + std::string(key) + " '" + std::string(word) + "'");
}

// Sorts the keys if one may be repeated, since an object may have as many as fit in a line.
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
  return token.substr(0, token.find_last_not_of(" \t\r\n") + 1);
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
