// Named values with units, which say what a finding is about. report/ has the words for them. They
// refer to nothing, so they outlive the traces that they are from.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "diagnose/say.h"
#include "diagnose/who.h"

namespace tprof::diagnose {

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
struct SizeClass {
  std::int64_t n = 0;  // [2^n, 2^(n+1)) bytes; below 0: none
  bool operator==(const SizeClass&) const = default;
};
struct Percent {
  double n = 0;
  bool operator==(const Percent&) const = default;
};

struct Fact;
using Facts = std::vector<Fact>;  // as a value: listed

struct Value {
  // A compiler takes seconds for these, and each file of the tool would have them.
  Value();
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();
  bool operator==(const Value&) const;

  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, Ns, Time, Bytes, SizeClass,
               Percent, std::string, Who, text::Ranks, Facts>
      is;
};

struct Named {
  std::string name;
  Value value{};

  template <typename T>
  Named(std::string n, T&& v) : name(std::move(n)) {
    set(std::forward<T>(v));
  }
  bool operator==(const Named&) const = default;

 private:
  template <typename T>
  void set(T&& v);
};
using Values = std::vector<Named>;

struct Fact {
  Say what{};
  Values values{};

  bool operator==(const Fact&) const = default;
};

template <typename T>
void Named::set(T&& v) {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (std::same_as<Plain, std::nullopt_t>) {  // the value is absent
  } else if constexpr (requires {
                         v.has_value();
                         *v;
                       }) {
    if (v) set(*std::forward<T>(v));
  } else if constexpr (std::same_as<Plain, bool>) {
    value.is = v;
  } else if constexpr (std::signed_integral<Plain>) {
    value.is = std::int64_t{v};
  } else if constexpr (std::unsigned_integral<Plain>) {
    value.is = std::uint64_t{v};
  } else if constexpr (std::same_as<Plain, const read::Process*>) {
    value.is = who_of({v});
  } else if constexpr (std::same_as<Plain, Processes>) {
    value.is = who_of(v);
  } else if constexpr (std::same_as<Plain, Fact>) {
    value.is = Facts{std::forward<T>(v)};
  } else if constexpr (std::is_convertible_v<T, std::string>) {
    value.is = std::string(std::forward<T>(v));
  } else {
    value.is = std::forward<T>(v);
  }
}

// Returns the value of that name, if it is of this kind. Null: it is not there.
template <typename T>
const T* value_of(const Values& values, std::string_view name) {
  const auto named = std::ranges::find(values, name, &Named::name);
  return named == values.end() ? nullptr : std::get_if<T>(&named->value.is);
}
bool has_value(const Values& values, std::string_view name);

// Sets a value, which may be there.
void set(Fact& fact, Named value);

// Keeps the first few of a list for people, and says how many more there are.
void shorten(Facts& list, std::size_t most);

}  // namespace tprof::diagnose
