#include "diff/compare.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

namespace tprof::diff {

Diff compare(const Run& a, const Run& b) {
  std::error_code none;
  Diff d;
  d.same_traces = std::filesystem::equivalent(a.path, b.path, none);
  for (const auto& [run, name] : {std::pair(&a, "A"), std::pair(&b, "B")}) {
    if (!run->job->beside.empty()) {
      d.notes.push_back(fmt::format("{}: {}", name, run->job->beside));
    }
    for (const read::Skipped& s : run->unreadable) {
      d.notes.push_back(fmt::format("{}: {}", name, s.reason));
    }
    if (run->ended) continue;
    d.notes.push_back(fmt::format("{} did not end, or is not all here: see tprof check", name));
  }
  compare_counts(a, b, d);
  compare_times(a, b, d);
  compare_slow_ranks(a, b, d);
  compare_settings(a, b, d);
  return d;
}

}  // namespace tprof::diff
