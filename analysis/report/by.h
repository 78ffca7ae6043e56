// `tprof summary --by X`: one row for each X.
#pragma once

#include <span>
#include <vector>

#include "report/section.h"
#include "summary/summary.h"

namespace tprof::report {

// `none`: nobody asked for one.
enum class By { none, size, op, comm, dtype, range, phase, step, site, layer, rank, wait };

// Which filters a table can honour: all, those of ranks and steps, that of ranks, or none.
enum class Follows { calls, steps, ranks, nothing };

// Tells what a table is made from: the ledgers alone, event lines too, or also the steps that are
// found.
enum class Takes { ledgers, lines, steps };

struct ByRow {
  By by;
  const char* name;
  const char* about;  // for --help, behind the name; empty: the name tells
  const char* json;   // its key in the JSON; null: the report has that anyway, shaped otherwise
  Takes takes;
  Follows follows;
  std::vector<Section> (*sections)(const stats::Summary&, For);
};

std::span<const ByRow> by_rows();
const ByRow& row_of(By by);

}  // namespace tprof::report
