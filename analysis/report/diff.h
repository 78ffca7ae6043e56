// What `tprof diff` prints: text for people, JSON for programs.
#pragma once

#include <string>

#include "diff/compare.h"
#include "diff/fail_on.h"

namespace tprof::report {

std::string to_text(const diff::Run& a, const diff::Run& b, const diff::Diff& diff,
                    const diff::Judgement& judgement);
std::string to_json(const diff::Run& a, const diff::Run& b, const diff::Diff& diff,
                    const diff::Judgement& judgement);

}  // namespace tprof::report
