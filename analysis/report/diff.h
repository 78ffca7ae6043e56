// Prints what `tprof diff` found: text for people, JSON for programs.
#pragma once

#include <cstddef>
#include <string>

#include "diff/compare.h"
#include "diff/fail_on.h"

namespace tprof::report {

// `width`: of lines of tables, where that can be done.
std::string to_text(const diff::Run& a, const diff::Run& b, const diff::Diff& diff,
                    const diff::Judgement& judgement, std::size_t width);
std::string to_json(const diff::Run& a, const diff::Run& b, const diff::Diff& diff,
                    const diff::Judgement& judgement);

}  // namespace tprof::report
