#include "why/stages.h"

#include <algorithm>
#include <map>
#include <set>

#include "check/agreement.h"

namespace tprof::why {
namespace {

std::map<const read::Process*, std::size_t> places_of(const Evidence& e) {
  std::map<const read::Process*, std::size_t> places;
  for (const read::Process* p : e.times.ranks) places.emplace(p, places.size());
  return places;
}

// Returns each rank's pipeline. Ranks that send each other messages are in the same one.
Places pipelines_of(const Evidence& e) {
  const Places rank_of = ranks_of_run(e);
  Places of = every_rank(e);
  const auto pipeline = [&](std::size_t r) {
    while (of[r] != r) r = of[r] = of[of[r]];
    return r;
  };
  const run::Run& run = e.model->run();
  for (std::size_t m = 0; m < run.meetings(); ++m) {
    const auto rows = run.meeting(m);
    if (!run.ranks[rows[0].rank].calls.is[rows[0].row].messages) continue;
    const std::size_t one = rank_of[rows[0].rank];
    for (const run::Row& row : rows) {
      const std::size_t other = rank_of[row.rank];
      if (one != SIZE_MAX && other != SIZE_MAX) of[pipeline(one)] = pipeline(other);
    }
  }
  for (std::size_t& r : of) r = pipeline(r);
  return of;
}

// A rank's calls: how often it calls a function on communicators of a size.
using Calls = std::map<std::pair<text::Kept, std::int64_t>, std::uint64_t>;

Calls calls_of(const run::Rank& rank) {
  Calls all;
  const run::Calls& c = rank.calls;
  for (std::size_t i = 0; i < c.size(); ++i) {
    const read::Comm* comm = read::comm_of(*rank.process, c.comm[i]);
    if (comm != nullptr) all[{c.name[i], comm->nranks}] += c.made[i];
  }
  return all;
}

bool alike(const Calls& a, const Calls& b) {
  std::uint64_t both = 0;
  std::uint64_t all = 0;
  for (const auto& [call, n] : a) {
    const auto other = b.find(call);
    both += other == b.end() ? 0 : std::min(n, other->second);
    all += n;
  }
  for (const auto& [call, n] : b) all += n;
  return 3 * both >= all;  // `all` has those of both twice
}

}  // namespace

Places ranks_of_run(const Evidence& e) {
  const auto places = places_of(e);
  Places all;
  for (const run::Rank& rank : e.model->run().ranks) {
    const auto place = places.find(rank.process);
    all.push_back(place == places.end() ? SIZE_MAX : place->second);
  }
  return all;
}

std::vector<Places> stages_of(const Evidence& e) {
  const Places pipelines = pipelines_of(e);
  const auto places = places_of(e);
  std::vector<std::set<std::size_t>> all;
  const auto apart = [&](const std::set<std::size_t>& ranks) {
    std::set<std::size_t> of;
    for (const std::size_t r : ranks) of.insert(pipelines[r]);
    return ranks.size() > 1 && of.size() == ranks.size();
  };
  for (const check::Communicator& c : check::communicators(e.job)) {
    std::set<std::size_t> stage;
    for (const check::Member& m : c.members) {
      const auto place = places.find(m.process);
      if (place != places.end()) stage.insert(place->second);
    }
    if (!apart(stage) || !sends(e, *stage.begin())) continue;
    std::erase_if(all, [&](const std::set<std::size_t>& other) {
      if (std::ranges::none_of(other, [&](std::size_t r) { return stage.contains(r); }))
        return false;
      std::set<std::size_t> both = stage;
      both.insert(other.begin(), other.end());
      const bool one = apart(both);
      if (one) stage = std::move(both);
      return one;
    });
    all.push_back(std::move(stage));
  }
  std::vector<Places> stages;
  for (const auto& stage : all) stages.emplace_back(stage.begin(), stage.end());
  return stages;
}

Places roles_of(const Evidence& e) {
  Places roles(e.times.ranks.size());
  const Places rank_of = ranks_of_run(e);
  std::vector<Calls> known;  // of the first rank in each role
  for (std::size_t r = 0; r < rank_of.size(); ++r) {
    if (rank_of[r] == SIZE_MAX) continue;
    Calls its = calls_of(e.model->run().ranks[r]);
    const auto role =
        std::ranges::find_if(known, [&](const Calls& first) { return alike(first, its); });
    roles[rank_of[r]] = static_cast<std::size_t>(role - known.begin());
    if (role == known.end()) known.push_back(std::move(its));
  }
  const Places pipelines = pipelines_of(e);
  for (const std::size_t r : every_rank(e)) {
    const std::size_t its = roles[r];
    const std::size_t of_pipeline = roles[pipelines[r]];
    if (its != of_pipeline) std::ranges::replace(roles, of_pipeline, its);
  }
  return roles;
}

}  // namespace tprof::why
