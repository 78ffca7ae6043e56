#include "filter/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "filter/filter.h"
#include "interpose/format/setting_values.h"
#include "read/error.h"
#include "text/ranks.h"

namespace tprof::filter {

using read::Process;

std::optional<std::string> absent_of(const std::string& asked, const job::Job& job) {
  if (asked.empty()) return std::nullopt;
  bool all = true;
  each_range(asked, [&](std::int64_t first, std::int64_t last) {
    const auto from = std::ranges::lower_bound(job.ranks, first);
    const auto to = std::ranges::upper_bound(job.ranks, last);
    all = all && to - from - 1 == last - first;
  });
  if (all) return std::nullopt;
  const bool one = job.ranks.size() == 1;
  return fmt::format("--ranks {}: only {} {} {} here", asked, one ? "rank" : "ranks",
                     text::Ranks(job.ranks).str(), one ? "is" : "are");
}

job::Job with_ranks(const job::Job& whole, const std::string& ranks, Comes how) {
  job::Job job = whole;
  if (ranks.empty()) return job;
  const auto key = [&](const Process* p) { return how == Comes::alone ? p : p - p->lane; };
  std::set<const Process*> listed;
  for (const Process* p : whole.processes) {
    if (p->header.rank && is_listed(ranks, *p->header.rank)) listed.insert(key(p));
  }
  std::erase_if(job.processes, [&](const Process* p) { return !listed.contains(key(p)); });
  job.ranks.clear();
  for (const Process* p : job.processes) {
    if (p->header.rank && (job.ranks.empty() || job.ranks.back() != *p->header.rank)) {
      job.ranks.push_back(*p->header.rank);
    }
  }
  job.missing.clear();
  if (!job.processes.empty()) return job;
  throw read::BadInput(whole.ranks.empty()
                           ? "--ranks: no process here says its rank"
                           : fmt::format("--ranks: none of the ranks {} is here; there {} {}",
                                         ranks, whole.ranks.size() == 1 ? "is rank" : "are ranks",
                                         text::Ranks(whole.ranks).str()));
}

}  // namespace tprof::filter
