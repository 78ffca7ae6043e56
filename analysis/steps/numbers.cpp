#include "steps/numbers.h"

#include <set>
#include <utility>

namespace tprof::steps {
namespace {

// How often numbers had begun again, and the number.
using Place = std::pair<std::size_t, std::int64_t>;

template <typename See>
void each_place(std::vector<Interval>& intervals, const See& see) {
  std::size_t again = 0;
  std::int64_t before = -1;
  for (Interval& i : intervals) {
    if (i.step <= before) ++again;
    before = i.step;
    see(Place(again, i.step), i);
  }
}

}  // namespace

bool count_on(Ranks& ranks) {
  std::set<Place> places;
  for (auto& [rank, intervals] : ranks) {
    each_place(intervals, [&](const Place& p, const Interval&) { places.insert(p); });
  }
  if (places.empty() || places.rbegin()->first == 0) return false;
  std::map<Place, std::int64_t> numbers;
  std::int64_t next = places.begin()->second;
  for (const Place& p : places) {
    if (p.first == 0) next = p.second;  // keeps its own
    numbers[p] = next++;
  }
  for (auto& [rank, intervals] : ranks) {
    each_place(intervals, [&](const Place& p, Interval& i) {
      i.step = numbers.at(p);
      i.epoch = static_cast<std::int64_t>(p.first);
    });
  }
  return true;
}

}  // namespace tprof::steps
