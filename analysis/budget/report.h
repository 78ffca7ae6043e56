// The output of `tprof budget`, as text or JSON.
#pragma once

#include <string>

#include "budget/compare.h"

namespace tprof::budget {

std::string to_text(const Measured& measured, const Compared& compared);
std::string to_json(const job::Job& job, const Measured& measured, const Compared& compared);

}  // namespace tprof::budget
