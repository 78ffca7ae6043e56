#include "diagnose/left_alone.h"

#include <algorithm>

#include "diagnose/ends.h"

namespace tprof::diagnose {

using read::End;
using read::Process;

namespace {

// Who ended first is why the others stand: more of a communicator are not looked at.
constexpr std::size_t kMostGone = 64;

Processes first_gone(const Communicator& communicator) {
  Processes gone = select(processes_of(communicator.members), [](const Process& p) {
    return p.end == End::closed || p.end == End::recovered;
  });
  std::ranges::stable_sort(gone, {}, [](const Process* p) { return latest_ns(*p); });
  if (gone.size() > kMostGone) gone.resize(kMostGone);
  return gone;
}

}  // namespace

LeftAlone::LeftAlone(const Case& c, const Waits& waits) : case_(c), waits_(waits) {
  for (const Communicator& communicator : c.communicators) {
    for (const Member& m : communicator.members) places_[m.process].push_back({&communicator, &m});
    gone_[&communicator] = first_gone(communicator);
  }
}

std::optional<bool> LeftAlone::ahead_of(const Process& q, const Process& p) const {
  std::optional<bool> ahead;
  for (const auto& [communicator, mine] : places_.at(&p)) {
    const std::vector<Place>& theirs = places_.at(&q);
    const auto his = std::ranges::find(theirs, communicator, &Place::communicator);
    if (his == theirs.end() || his->member->done == nullptr || mine->done == nullptr) continue;
    ahead = ahead.value_or(false) || his->member->count() > mine->count();
  }
  return ahead;
}

bool LeftAlone::holds(const Process& p, std::int64_t long_ns) const {
  const OpenCall* call = waits_.open_call(&p);
  if (call == nullptr || call->communicator != nullptr || !call->since_ns) return false;
  const auto left_it = [&](const Process* q) {
    if (q == &p || !ended_before(*q, p, case_.lines)) return false;
    const std::int64_t doubt = clock_doubt_ns(p, *q, case_.lines).value_or(0);
    if (*call->since_ns + long_ns < end_ns(*q) - doubt) return false;
    const auto ahead = ahead_of(*q, p);
    if (!ahead) return false;
    // One that closed with as many collectives may have been through.
    const bool at_once = *call->since_ns - doubt - long_ns < latest_ns(*q);
    return *ahead || q->end == End::recovered || at_once;
  };
  const auto shared = places_.find(&p);
  return shared != places_.end() && std::ranges::any_of(shared->second, [&](const Place& place) {
           return std::ranges::any_of(gone_.at(place.communicator), left_it);
         });
}

}  // namespace tprof::diagnose
