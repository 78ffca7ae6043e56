// One thing that is missing, incomplete or contradictory in the traces of a job, as data: report/
// makes the sentences.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/facts.h"

namespace tprof::diagnose {

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

}  // namespace tprof::diagnose
