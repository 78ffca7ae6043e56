// One thing that is missing, incomplete or contradictory in the traces of a job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/names.h"

namespace tprof::diagnose {

enum class Severity { note, warning, error };
inline constexpr const char* kSeverityNames[] = {"note", "warning", "error"};

struct Finding {
  std::string kind;
  Severity severity = Severity::note;
  std::vector<std::int64_t> ranks{};
  std::string text{};  // one sentence
  std::string next{};  // what to do; empty: nothing
  // The place of the problem, as far as it is known.
  std::string communicator{};                       // id; empty: none
  std::optional<std::uint64_t> seq = std::nullopt;  // of a collective on it
  // Half-open range that contains the collective, as narrow as is known.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> between = std::nullopt;
  std::string function{};
  std::vector<std::string> evidence{};  // observations, a sentence each

  const char* severity_name() const { return kSeverityNames[static_cast<int>(severity)]; }
};

using Findings = std::vector<Finding>;

// A kind of finding; each diagnosis declares its own.
struct Kind {
  const char* name;
  Severity severity;
};

// Appends a finding and returns it, so that the caller can set its other fields.
Finding& add(Findings& to, const Kind& kind, const Processes& who, std::string text,
             std::string next = "");

bool healthy(const Findings& findings);  // true if all are notes

// Sorts the worst first and keeps the first few of each kind; one more finding counts the others.
void order_and_cap(Findings& findings);

}  // namespace tprof::diagnose
