// The output of `tprof budget`, as text or JSON.
#pragma once

#include <cstddef>
#include <string>

#include "budget/compare.h"

namespace tprof::budget {

// `width`: of lines of the table, where that can be done.
std::string to_text(const Measured& measured, const Compared& compared, std::size_t width);
std::string to_json(const job::Job& job, const Measured& measured, const Compared& compared);

}  // namespace tprof::budget
