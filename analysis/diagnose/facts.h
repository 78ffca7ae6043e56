// Named values with units, which say what a finding is about. report/ has the words for them.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "diagnose/kinds.h"
#include "diagnose/names.h"

namespace tprof::diagnose {

// The sentences: one for each kind, and these, which are parts of others, evidence or advice.
// clang-format off
#define TPROF_SENTENCES(X)                                                                        \
  X(as_is) X(more_of_kind) X(more) X(then) X(counted_names)                                       \
  X(latest_arrival) X(arrivals_are)                                                               \
  X(untimed_no_context) X(untimed_no_pair) X(untimed_mixed) X(untimed_in_progress)                \
  X(untimed_sync) X(untimed_unread) X(untimed_device) X(untimed_no_record)                        \
  X(untimed_impossible) X(untimed_tool) X(untimed_order)                                          \
  X(exposure_no_launch) X(exposure_host_late) X(exposure_no_pair) X(exposure_unread)              \
  X(exposure_no_room) X(exposure_no_clock)                                                        \
  X(missed_of) X(version_on)                                                                      \
  X(totals_unmatched) X(sums) X(sums_differ) X(part_at) X(part_within) X(difference)
// clang-format on

#define X(name, ...) name,
enum class Say : std::uint8_t { TPROF_KINDS(X) TPROF_SENTENCES(X) count_ };
#undef X

constexpr Say say(Kind kind) {
  return static_cast<Say>(kind);
}

struct Ns {
  std::int64_t n = 0;
  bool operator==(const Ns&) const = default;
};
struct Time {
  std::int64_t realtime_ns = 0;  // CLOCK_REALTIME
  bool operator==(const Time&) const = default;
};
struct Bytes {
  std::uint64_t n = 0;
  bool operator==(const Bytes&) const = default;
};
struct Percent {
  double n = 0;
  bool operator==(const Percent&) const = default;
};

struct Fact;
using Facts = std::vector<Fact>;  // as a value: listed, with commas between them

struct Value {
  // These are defined below, where Fact is complete: clang needs that.
  Value();
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();
  bool operator==(const Value&) const;

  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, Ns, Time, Bytes, Percent,
               std::string, Processes, std::vector<std::int64_t>, Facts>
      is;
};

struct Named {
  const char* name;
  Value value{};

  template <typename T>
  Named(const char* n, T&& v) : name(n) {
    set(std::forward<T>(v));
  }
  bool operator==(const Named&) const = default;

 private:
  template <typename T>
  void set(T&& v);
};
using Values = std::vector<Named>;

struct Fact {
  Say what = Say::as_is;
  Values values{};

  bool operator==(const Fact&) const = default;
};

inline Value::Value() = default;
inline Value::Value(const Value&) = default;
inline Value::Value(Value&&) noexcept = default;
inline Value& Value::operator=(const Value&) = default;
inline Value& Value::operator=(Value&&) noexcept = default;
inline Value::~Value() = default;
inline bool Value::operator==(const Value& other) const {
  return is == other.is;
}

template <typename T>
void Named::set(T&& v) {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (requires {
                  v.has_value();
                  *v;
                }) {  // nullopt: the value is absent
    if (v) set(*std::forward<T>(v));
  } else if constexpr (std::same_as<Plain, bool>) {
    value.is = v;
  } else if constexpr (std::signed_integral<Plain>) {
    value.is = std::int64_t{v};
  } else if constexpr (std::unsigned_integral<Plain>) {
    value.is = std::uint64_t{v};
  } else if constexpr (std::same_as<Plain, const read::Process*>) {
    value.is = Processes{v};
  } else if constexpr (std::same_as<Plain, Fact>) {
    value.is = Facts{std::forward<T>(v)};
  } else if constexpr (std::is_convertible_v<T, std::string>) {
    value.is = std::string(std::forward<T>(v));
  } else {
    value.is = std::forward<T>(v);
  }
}

// For sentences that are not in report/'s words yet: those of hang.cpp, standing.cpp, explain.cpp
// and mismatch.h's evidence.
inline Fact as_is(std::string text) {
  return {Say::as_is, {{"text", std::move(text)}}};
}
inline Facts as_is(const std::vector<std::string>& texts) {
  Facts facts;
  for (const std::string& t : texts) facts.push_back(as_is(t));
  return facts;
}

// Keeps the first few of a list for people, and says how many more there are.
void shorten(Facts& list, std::size_t most);

}  // namespace tprof::diagnose
