// A finding as data: report/ makes the sentences. Its facts are named values with units and hold no
// references, so they outlive the traces.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "check/kinds.h"
#include "check/names.h"

namespace tprof::check {

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
  std::int64_t n = 0;  // [2^n, 2^(n+1)) bytes; negative: none
  bool operator==(const SizeClass&) const = default;
};
struct Percent {
  double n = 0;
  bool operator==(const Percent&) const = default;
};

struct Fact;
using Facts = std::vector<Fact>;  // as a value: a list

struct Value {
  // Defined in finding.cpp, since they would take seconds to compile in each file.
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
    value.is = Who({v});
  } else if constexpr (std::same_as<Plain, Processes>) {
    value.is = Who(v);
  } else if constexpr (std::same_as<Plain, Fact>) {
    value.is = Facts{std::forward<T>(v)};
  } else if constexpr (std::is_convertible_v<T, std::string>) {
    value.is = std::string(std::forward<T>(v));
  } else {
    value.is = std::forward<T>(v);
  }
}

// Returns the value of that name and type; null: there is none.
template <typename T>
const T* value_of(const Values& values, std::string_view name) {
  const auto named = std::ranges::find(values, name, &Named::name);
  return named == values.end() ? nullptr : std::get_if<T>(&named->value.is);
}
bool has_value(const Values& values, std::string_view name);

// Sets or replaces a value.
void set(Fact& fact, Named value);

// Keeps the first `most` of a list and says how many more there are.
void shorten(Facts& list, std::size_t most);

// The time lost, as far as a diagnosis can tell.
struct Cost {
  std::int64_t ns = 0;                        // in the whole run
  std::int64_t doubt_ns = 0;                  // how far off that may be
  double share = 0;                           // of the run's time
  std::optional<std::int64_t> ns_per_step{};  // nullopt: steps are unknown
};

// The time that a finding is about, in CLOCK_REALTIME of the hosts.
struct TimeRange {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
};

// Returns the range that covers both.
TimeRange joined(const std::optional<TimeRange>& some, const TimeRange& more);

struct StepRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

struct Finding {
  Kind kind{};
  Severity severity = Severity::note;
  text::Ranks ranks{};
  Fact text{};
  std::optional<Fact> next{};        // advice; nullopt: the advice that belongs to `text`
  std::optional<TimeRange> time{};   // nullopt: not known
  std::optional<StepRange> steps{};  // nullopt: unknown
  text::Ranks in_steps{};            // which of these; empty: unknown
  // The place of the problem, as far as known.
  std::string communicator{};                       // id; empty: none
  std::optional<std::uint64_t> seq = std::nullopt;  // of a collective on it
  // The narrowest known half-open range that contains the collective.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> between = std::nullopt;
  std::string function{};
  std::optional<Cost> cost{};
  Facts evidence{};

  const char* severity_name() const { return kSeverityNames[static_cast<int>(severity)]; }
};

using Findings = std::vector<Finding>;

// Appends a finding with its kind's sentence, these values and `who`, and returns it so that the
// caller can set more.
Finding& add(Findings& to, Kind kind, const Processes& who, Values values = {});

// Adds an effect's sentence and evidence to its cause.
void tell_in(Finding& cause, Say how, const Finding& effect);

// True if it says why the job did not go on, or that ranks did not do the same. This matters more
// than slowness or incomplete files.
bool keeps_from_going_on(const Finding& finding);

bool healthy(const Findings& findings);  // true if all are notes

// Returns the ids of the communicators of findings of these kinds.
std::set<std::string> communicators_of(const Findings& findings, std::initializer_list<Kind> kinds);

inline constexpr std::size_t kMaxOfKind = 16;  // the most that are shown

// Sorts by severity and keeps the first few of each kind; one more finding counts the rest.
void order_and_cap(Findings& findings);

}  // namespace tprof::check
