// The lines of a rank, as far as a diagnosis asks for them.
#pragma once

#include <optional>
#include <tuple>

#include "diagnose/last_calls.h"
#include "diagnose/ledger_lines.h"
#include "diagnose/operations.h"
#include "run/lines.h"

namespace tprof::diagnose {

struct Seen {
  LastCalls last;
  SumsOfLines sums;
  std::optional<Operations> operations{};  // for `check` only

  auto parts() { return std::tie(last, sums, operations); }
};
using SeenLines = run::ByRank<Seen>;

// A part of it; an empty one where the rank's lines can't be read.
template <typename T>
const T& seen_of(const read::Process& rank, const SeenLines& lines) {
  static const read::Process kNobody;
  static const T kNothing(kNobody);
  const T* seen = lines.of<T>(&rank);
  return seen == nullptr ? kNothing : *seen;
}

}  // namespace tprof::diagnose
