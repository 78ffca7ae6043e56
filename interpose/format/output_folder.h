// The pattern in TPROF_OUTPUT_DIR.
#pragma once

#include <string_view>

#include "interpose/base/text.h"

namespace tprof {

inline constexpr const char* kJobIds[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"};
inline constexpr std::string_view kNoJob = "nojob";

// Calls `see(sign, text)` for each part of a pattern, in order. The sign is j (job id), h (host), p
// (pid), r (rank), or 0 for text; %% is the text %.
template <typename See>
void each_part_of_folder(std::string_view pattern, const See& see) {
  constexpr std::string_view kSigns = "jhpr";
  while (!pattern.empty()) {
    const char next = pattern[0] == '%' && pattern.size() > 1 ? pattern[1] : '\0';
    const bool sign = kSigns.find(next) != kSigns.npos;
    see(sign ? next : '\0', prefix(pattern, 1));
    pattern.remove_prefix(sign || next == '%' ? 2 : 1);
  }
}

}  // namespace tprof
