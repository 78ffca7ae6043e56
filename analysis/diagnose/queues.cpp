#include "diagnose/queues.h"

#include <algorithm>
#include <set>

namespace tprof::diagnose {
namespace {

// Lets everything run that can.
class Running {
 public:
  explicit Running(const std::vector<Queue>& queues)
      : queues_(queues), place_(queues.size()), left_(queues.size()) {
    for (std::size_t q = 0; q < queues.size(); ++q) {
      for (std::size_t place = 0; place < queues[q].places.size(); ++place) {
        for (const Queued& call : queues[q].places[place]) where_[call.what].push_back({q, place});
      }
    }
    for (const auto& [what, places] : where_) away_[what] = places.size();
    for (std::size_t q = 0; q < queues.size(); ++q) come_to(q);
    while (!through_.empty()) {
      const CollectiveOf what = through_.back();
      through_.pop_back();
      ran_.insert(what);
      for (const auto& [q, place] : where_.at(what)) {
        if (--left_[q] != 0) continue;
        ++place_[q];
        come_to(q);
      }
    }
  }

  std::vector<Behind> circle() const {
    std::vector<Behind> path;
    for (std::size_t q = 0; q < queues_.size(); ++q) {
      if (!stands(q)) continue;
      for (Queued behind{};;) {
        const auto again = std::ranges::find(path, &queues_[q], &Behind::queue);
        if (again != path.end()) {
          again->then = behind;
          path.erase(path.begin(), again);
          return path;
        }
        path.push_back({&queues_[q], standing_at(q), behind});
        // Its collective did not run, so it stands behind another one somewhere.
        const CollectiveOf what = path.back().first.what;
        const auto& places = where_.at(what);
        q = std::ranges::find_if(places, [&](const auto& at) {
              return at.second != place_[at.first];
            })->first;
        behind = *queues_[q].find(what);
      }
    }
    return path;
  }

 private:
  bool stands(std::size_t q) const { return place_[q] < queues_[q].places.size(); }

  void come_to(std::size_t q) {
    if (!stands(q)) return;
    const auto& calls = queues_[q].places[place_[q]];
    left_[q] = calls.size();
    for (const Queued& call : calls) {
      if (--away_[call.what] == 0) through_.push_back(call.what);
    }
  }

  Queued standing_at(std::size_t q) const {
    return *std::ranges::find_if(queues_[q].places[place_[q]],
                                 [&](const Queued& call) { return !ran_.contains(call.what); });
  }

  const std::vector<Queue>& queues_;
  std::map<CollectiveOf, std::vector<std::pair<std::size_t, std::size_t>>> where_;  // queue, place
  std::map<CollectiveOf, std::size_t> away_;  // how many queues have not come to it
  std::vector<std::size_t> place_;            // to which each queue has come
  std::vector<std::size_t> left_;             // how many there have not run
  std::vector<CollectiveOf> through_;
  std::set<CollectiveOf> ran_;
};

}  // namespace

void Queue::add(const Queued& call) {
  const bool joins = !places.empty() && call.call->grouped && places.back().back().call->grouped;
  if (!joins) places.emplace_back();
  places.back().push_back(call);
}

const Queued* Queue::find(const CollectiveOf& what, std::size_t* place) const {
  for (const auto& calls : places) {
    const auto call = std::ranges::find(calls, what, &Queued::what);
    if (call == calls.end()) continue;
    if (place != nullptr) *place = static_cast<std::size_t>(&calls - places.data());
    return &*call;
  }
  return nullptr;
}

std::vector<Behind> circle_of(const std::vector<Queue>& queues) {
  return Running(queues).circle();
}

}  // namespace tprof::diagnose
