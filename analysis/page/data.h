// The page's data as JSON: all of it in bounded size, whatever the number of ranks and steps.
#pragma once

#include "page/gather.h"
#include "report/json.h"

namespace tprof::page {

using report::Json;

// Returns schema tprof-report/1, which analysis/report/README.md describes.
Json data_of(const Gathered& g);

// Its parts.
Json only_of(const Gathered& g);
Json run_of(const Gathered& g);
Json buckets_of(const Gathered& g);
Json step_of(const Gathered& g);
Json per_rank_of(const Gathered& g);
Json heat_of(const Gathered& g);
Json operations_of(const Gathered& g);
Json waits_of(const Gathered& g);
Json histograms_of(const Gathered& g);
Json timelines_of(const Gathered& g);
Json communicators_of(const Gathered& g);
Json late_of(const Gathered& g);

// A reason for which something was not seen.
struct Unseen {
  std::string noun;  // of what was counted, such as "call"; empty: it was not
  std::string what;
  std::string why{};    // empty: not known
  std::uint64_t n = 0;  // 0: not counted
  text::Ranks ranks{};
};
std::vector<Unseen> unseen_by(const Gathered& g);

// Says which filters are on, and of what; empty: none.
std::string only_text_of(const Gathered& g);

}  // namespace tprof::page
