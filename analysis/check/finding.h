// One thing that is missing, incomplete or contradictory in the traces of a job, as data: report/
// makes the sentences. Its facts are named values with units, which refer to nothing, so they
// outlive the traces that they are from.
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

// The time that is lost by it, as far as a diagnosis can tell.
struct Cost {
  std::int64_t ns = 0;                        // in the whole run
  std::int64_t doubt_ns = 0;                  // the most by which that may be wrong
  double share = 0;                           // of the run's time
  std::optional<std::int64_t> ns_per_step{};  // nullopt: its steps are not known
};

// CLOCK_REALTIME of the hosts: from the first to the last moment that it is about.
struct TimeRange {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
};

// Both, from the first moment to the last.
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
  std::optional<Fact> next{};        // what to do; nullopt: what the words of `text` advise
  std::optional<TimeRange> time{};   // nullopt: not known
  std::optional<StepRange> steps{};  // nullopt: not known, or the program marks none
  text::Ranks in_steps{};            // which of these; empty: not known
  // The place of the problem, as far as it is known.
  std::string communicator{};                       // id; empty: none
  std::optional<std::uint64_t> seq = std::nullopt;  // of a collective on it
  // Half-open range that contains the collective, as narrow as is known.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> between = std::nullopt;
  std::string function{};
  std::optional<Cost> cost{};
  Facts evidence{};

  const char* severity_name() const { return kSeverityNames[static_cast<int>(severity)]; }
};

using Findings = std::vector<Finding>;

// Appends a finding that says what its kind does, and returns it, so that the caller can set its
// other fields. Its values are these, and `who`.
Finding& add(Findings& to, Kind kind, const Processes& who, Values values = {});

// Adds what an effect says, with its evidence, to that of its cause.
void tell_in(Finding& cause, Say how, const Finding& effect);

// True if it tells why the job did not go on, or that ranks did not do the same: more than whatever
// made it slow, and than what is missing in its files.
bool keeps_from_going_on(const Finding& finding);

bool healthy(const Findings& findings);  // true if all are notes

// The ids of the communicators that findings of these kinds are about.
std::set<std::string> communicators_of(const Findings& findings, std::initializer_list<Kind> kinds);

inline constexpr std::size_t kMaxOfKind = 16;  // are shown

// Sorts the worst first and keeps the first few of each kind; one more finding counts the others.
void order_and_cap(Findings& findings);

}  // namespace tprof::check
