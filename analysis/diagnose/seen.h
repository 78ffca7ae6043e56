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
  ReturnedCalls returned{};
  OpenRanges ranges{};
  SumsOfLines sums;
  std::optional<Operations> operations;  // for `check` only

  auto parts() { return std::tie(last, returned, ranges, sums, operations); }
};
using SeenLines = run::ByRank<Seen>;

}  // namespace tprof::diagnose
