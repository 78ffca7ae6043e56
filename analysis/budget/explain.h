// Says what differences from a budget are made of, where a known mistake accounts for all of it.
#pragma once

#include <string>
#include <vector>

#include "budget/compare.h"

namespace tprof::budget {

// Returns sentences without their full stop, for each bucket of these rows that is not within.
std::vector<std::string> explain(const std::vector<Row>& rows, const Budget& budget);

}  // namespace tprof::budget
