#include "steps/pace.h"

#include <algorithm>

namespace tprof::steps {
namespace {

constexpr double kAbout = 0.9;

// The mean without the first step, in which frameworks set up, and the longest.
double usual_ns(const std::vector<Interval>& intervals) {
  std::vector<double> all;
  for (const Interval& i : intervals) {
    if (i.end_known && i.to_ns >= i.from_ns) {
      all.push_back(static_cast<double>(i.to_ns) - static_cast<double>(i.from_ns));
    }
  }
  if (all.size() > 2) all.erase(all.begin());
  if (all.size() > 2) all.erase(std::ranges::max_element(all));
  double sum = 0;
  for (const double ns : all) sum += ns;
  return all.empty() ? 0 : sum / static_cast<double>(all.size());
}

}  // namespace

std::set<const read::Process*> in_pace(const Found& found) {
  std::map<const read::Process*, double> usual;
  double longest = 0;
  for (const auto& [rank, intervals] : found.ranks) {
    longest = std::max(longest, usual[rank] = usual_ns(intervals));
  }
  std::set<const read::Process*> all;
  for (const auto& [rank, ns] : usual) {
    if (ns >= kAbout * longest) all.insert(rank);
  }
  return all;
}

bool may_run_ahead(const Found& found) {
  return std::ranges::any_of(found.ranks, [](const auto& rank) {
    std::uint64_t reads = 0;
    for (const read::Row& row : read::rows_of(*rank.first)) {
      if (row.bucket == Bucket::D2H && row.mode == Mode::direct) reads += row.amounts.calls;
    }
    return reads < rank.second.size();
  });
}

}  // namespace tprof::steps
