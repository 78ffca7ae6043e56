// Says what differences from a budget are made of, where a known mistake accounts for all of it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "budget/compare.h"

namespace tprof::budget {

// All-gathers as all_gather_object makes them, of a step: one int64, then bytes.
struct Objects {
  double calls = 0;  // of bytes, the small ones aside
  double bytes = 0;  // of these
  double small = 0;  // other calls of objects: those of the int64, and of less bytes
};
Objects objects_of(const Figures& figures);

// Returns sentences without their full stop, for each bucket that is not within. The rows are of
// the same ranks.
std::vector<std::string> explain(std::span<const Row> rows, const Objects& objects,
                                 const Budget& budget);

}  // namespace tprof::budget
