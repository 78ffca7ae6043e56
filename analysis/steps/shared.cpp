#include "steps/shared.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

namespace tprof::steps {
namespace {

using read::Process;
using Firsts = std::map<std::size_t, std::uint64_t>;  // step index -> its first collective

// A communicator through which a rank takes over another rank's steps.
struct Source {
  std::string comm{};
  const Process* rank = nullptr;
};

bool is_on(const Process& rank, const read::Event& e, const std::string& comm) {
  if (!e.comm || !e.numbered || e.bucket == Bucket::P2P) return false;
  const read::Comm* its = read::comm_of(rank, e.comm);
  return its != nullptr && its->id == comm;
}

// Finds the first collective of each step of a rank on a communicator, and the first one after the
// steps.
struct First {
  First(const Process& rank, std::string comm, const std::vector<Interval>& steps)
      : rank_(rank), comm_(std::move(comm)), steps_(steps) {}
  void call(const read::Event& e) {
    if (!is_on(rank_, e, comm_)) return;
    const auto next = std::ranges::upper_bound(steps_, e.ts_ns, {}, &Interval::from_ns);
    auto place = static_cast<std::size_t>(next - steps_.begin());
    if (place == 0) return;
    if (e.ts_ns < steps_[place - 1].to_ns) --place;
    const auto [number, fresh] = numbers.try_emplace(place, e.seq);
    number->second = std::min(number->second, e.seq);
  }

  Firsts numbers{};

 private:
  const Process& rank_;
  std::string comm_;
  const std::vector<Interval>& steps_;
};

// Finds when a rank called these collectives.
struct Begun {
  Begun(const Process& rank, std::string comm, const Firsts& numbers)
      : rank_(rank), comm_(std::move(comm)) {
    for (const auto& [place, number] : numbers) places_[number] = place;
  }
  void call(const read::Event& e) {
    end_ns_ = std::max(end_ns_, e.ts_ns + e.dur_ns + 1);
    const auto place = places_.find(e.seq);
    if (place != places_.end() && is_on(rank_, e, comm_)) begun_ns_[place->second] = e.ts_ns;
  }
  // Empty: it did not call all of them.
  std::vector<Interval> steps(std::vector<Interval> as) const {
    for (std::size_t k = 0; k < as.size(); ++k) {
      const auto from = begun_ns_.find(k);
      const auto to = begun_ns_.find(k + 1);
      const bool last = k + 1 == as.size() && to == begun_ns_.end();
      if (from == begun_ns_.end() || (to == begun_ns_.end() && !last)) return {};
      as[k].from_ns = from->second;
      as[k].to_ns = last ? end_ns_ : to->second;
      as[k].end_known = !last;
    }
    return as;
  }

 private:
  const Process& rank_;
  std::string comm_;
  std::map<std::uint64_t, std::size_t> places_{};
  std::map<std::size_t, std::int64_t> begun_ns_{};
  std::int64_t end_ns_ = 0;
};

}  // namespace

RanksByWhy share_steps(const run::Lines& lines, const RanksByWhy& none, Found& found) {
  std::map<std::string, const Process*> known;  // by communicator id: a rank with steps
  for (const auto& [rank, steps] : found.ranks) {
    for (const auto& [number, comm] : rank->comms) {
      if (comm.known()) known.try_emplace(comm.id, rank);
    }
  }
  std::map<const Process*, Source> sources;
  std::map<const Process*, std::string> asked;
  const auto find_source = [&](const Process* p) {
    for (const auto& [number, comm] : p->comms) {
      const auto rank = comm.known() ? known.find(comm.id) : known.end();
      if (rank == known.end()) continue;
      if (asked.try_emplace(rank->second, comm.id).first->second != comm.id) continue;
      sources[p] = {comm.id, rank->second};
      return;
    }
  };
  for (const auto& [why, ranks] : none) std::ranges::for_each(ranks, find_source);
  if (sources.empty()) return none;
  const auto firsts = lines.each([&](const Process& p) {
    const auto of = asked.find(&p);
    return of == asked.end()
               ? std::nullopt
               : std::optional<First>(std::in_place, p, of->second, found.ranks.at(&p));
  });
  const auto begun = lines.each([&](const Process& p) {
    const auto from = sources.find(&p);
    const auto* first = from == sources.end() ? nullptr : firsts.of(from->second.rank);
    return first == nullptr
               ? std::nullopt
               : std::optional<Begun>(std::in_place, p, from->second.comm, first->numbers);
  });
  RanksByWhy rest;
  for (const auto& [why, ranks] : none) {
    for (const Process* p : ranks) {
      const auto* its = begun.of(p);
      std::vector<Interval> steps;
      if (its != nullptr) steps = its->steps(found.ranks.at(sources.at(p).rank));
      steps.empty() ? rest[why].push_back(p) : void(found.ranks[p] = std::move(steps));
    }
  }
  return rest;
}

}  // namespace tprof::steps
