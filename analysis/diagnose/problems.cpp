#include "diagnose/problems.h"

#include <algorithm>

#include "diagnose/agreement.h"
#include "diagnose/coverage.h"

namespace tprof::diagnose {

void sort_by_severity(std::vector<Problem>& problems) {
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
  assumed_job(job, found);
  skipped_files(skipped, found);
  sort_by_severity(found);
  return found;
}

}  // namespace tprof::diagnose
