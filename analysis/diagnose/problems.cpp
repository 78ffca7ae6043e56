#include "diagnose/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "diagnose/agreement.h"
#include "diagnose/coverage.h"
#include "diagnose/names.h"
#include "text/text.h"

namespace tprof::diagnose {

namespace {

constexpr std::size_t kMaxOfKind = 16;

// Those of a kind beyond the first are one that says how many they are.
std::vector<Problem> few_of_each_kind(std::vector<Problem> problems) {
  std::map<std::string, std::size_t> seen;
  std::vector<Problem> few;
  std::map<std::string, std::pair<Problem, std::set<std::int64_t>>> rest;
  for (Problem& p : problems) {
    const std::size_t n = ++seen[p.kind];
    if (n <= kMaxOfKind) {
      few.push_back(std::move(p));
      continue;
    }
    auto& [more, ranks] =
        rest.try_emplace(p.kind, Problem{.kind = p.kind}, std::set<std::int64_t>{}).first->second;
    more.severity = std::max(more.severity, p.severity);
    ranks.insert(p.ranks.begin(), p.ranks.end());
  }
  for (auto& [kind, both] : rest) {
    auto& [more, ranks] = both;
    more.ranks.assign(ranks.begin(), ranks.end());
    more.text =
        fmt::format("and {} more findings of kind {}{}", report::thousands(seen[kind] - kMaxOfKind),
                    kind, ranks.empty() ? "" : ": " + names_of(more.ranks));
    few.push_back(std::move(more));
  }
  return few;
}

}  // namespace

void tidy(std::vector<Problem>& problems) {
  std::ranges::stable_sort(problems, std::ranges::greater(), &Problem::severity);
  problems = few_of_each_kind(std::move(problems));
  std::ranges::stable_sort(problems, std::ranges::greater(), &Problem::severity);
}

std::vector<Problem> problems(const match::Job& job, const std::vector<read::Skipped>& skipped,
                              bool whole_job) {
  std::vector<Problem> found;
  if (whole_job) missing_ranks(job, found);
  contested_ranks(job, found);
  not_closed(job, found);
  overflows(job, found);
  failed_calls(job, found);
  unfinished_calls(job, found);
  mismatches(job, found);
  coverage(job, found);
  dropped(job, found);
  other_jobs(job, found);
  assumed_job(job, found);
  skipped_files(skipped, found);
  tidy(found);
  return found;
}

}  // namespace tprof::diagnose
