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
  // Where it lies, as far as that is known.
  std::string communicator{};                       // id; empty: none
  std::optional<std::uint64_t> seq = std::nullopt;  // of a collective of it
  // Half open: the collective is one of these. As narrow as is known.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> between = std::nullopt;
  std::string function{};
  std::vector<std::string> evidence{};  // what was seen, a sentence each

  const char* severity_name() const { return kSeverityNames[static_cast<int>(severity)]; }
};

using Findings = std::vector<Finding>;

// What a diagnosis finds: it declares these.
struct Kind {
  const char* name;
  Severity severity;
};

// Appends a finding; what else is known of it is set in what comes back.
Finding& add(Findings& to, const Kind& kind, const Processes& who, std::string text,
             std::string next = "");

bool healthy(const Findings& findings);  // none is more than a note

// The worst first, and of each kind the first few; one more says how many the others are.
void order_and_cap(Findings& findings);

}  // namespace tprof::diagnose
