// The page's data as JSON: all of it in bounded size, whatever the number of ranks and steps.
#pragma once

#include <string>
#include <vector>

#include "page/page.h"
#include "report/json.h"
#include "report/table.h"

namespace tprof::page {

using report::For;
using report::Json;
using report::or_null;
using report::Section;

// Returns schema tprof-report/1, which analysis/report/README.md describes.
Json data_of(const Gathered& g);

// The tables of the page, with all their rows; the screen shows the first rows of some.
Section buckets_of(const Gathered& g, For who);
Section operations_of(const Gathered& g, For who);
Section late_of(const Gathered& g, For who);
Section late_places_of(const Gathered& g);
Section waits_of(const Gathered& g);
Section communicators_of(const Gathered& g);

// These are drawn otherwise.
Json step_of(const Gathered& g);
Json per_rank_of(const Gathered& g);
Json heat_of(const Gathered& g);
Json histograms_of(const Gathered& g);
Json timelines_of(const Gathered& g);

// The parts of the usual step, in their order.
struct PartOfStep {
  const char* key;
  const char* name;
  std::int64_t ns;
};
std::vector<PartOfStep> parts_of(const why::Why& why);

// A finding of something that was not seen. n: how much that is; 0: not counted.
struct Unseen {
  std::string what;
  std::uint64_t n = 0;
  text::Ranks ranks{};
};
std::vector<Unseen> unseen_by(const Gathered& g);

// Says which filters are on, and of what; empty: none.
std::string only_text_of(const Gathered& g);

}  // namespace tprof::page
