// One thing that is missing, incomplete or contradictory in the traces of a job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tprof::diagnose {

enum class Severity { note, warning, error };
inline constexpr const char* kSeverityNames[] = {"note", "warning", "error"};

struct Problem {
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
};

// Ranks that are all there can still have done different things.
inline constexpr const char* kMismatch = "mismatch";

}  // namespace tprof::diagnose
