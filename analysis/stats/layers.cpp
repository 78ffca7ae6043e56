#include "stats/layers.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "stats/comms.h"
#include "stats/rank_layers.h"

namespace tprof::stats {
namespace {

using read::Amounts;
using read::Process;

// The common properties of the ranks of a group. The last element numbers communicators of a rank
// that are alike.
using Signature =
    std::tuple<std::int64_t, std::vector<std::tuple<bool, std::uint64_t, std::string>>,
               std::size_t>;

Signature signature_of(const Process& rank, const CommLayers& comm) {
  Signature s;
  const auto known = rank.comms.find(comm.comm);
  std::get<0>(s) = known == rank.comms.end() ? 0 : known->second.nranks;
  for (const RankRow& row : comm.rows) {
    std::get<1>(s).emplace_back(row.unit, row.call.count, row.call.dtype);
  }
  return s;
}

// Returns all communicators but those whose names say that something else is sent on them.
std::set<std::int64_t> carriers_of(const Process& rank, const std::vector<CommSummary>& comms) {
  std::set<std::int64_t> carriers;
  for (const auto& entry : rank.comms) {
    const read::Comm& comm = entry.second;
    const auto known = std::ranges::find_if(
        comms, [&](const CommSummary& c) { return c.id == comm.id && c.nranks == comm.nranks; });
    const std::string role =
        known == comms.end() || known->role_guessed ? std::string() : known->role;
    const bool activations =
        role == "tensor" || role == "sequence" || role == "context" || role == "pipeline";
    if (comm.known() && comm.nranks > 1 && !activations) carriers.insert(entry.first);
  }
  return carriers;
}

// A rank, its lines and its steps.
struct RankSeen {
  const Process& process;
  const LayerCalls& rank;
  const std::vector<steps::Interval>& steps;
};

Passes passes_of(const RankSeen& seen) {
  Places by_time(seen.rank.calls.size());
  std::iota(by_time.begin(), by_time.end(), 0U);
  std::ranges::stable_sort(by_time, {}, [&](std::uint32_t i) { return seen.rank.calls[i].ts_ns; });
  return passes_of(seen.rank, by_time, seen.steps);
}

class Merger {
 public:
  Merger(const StepRange& asked, const std::vector<CommSummary>& comms, Layers& to)
      : asked_(asked), comms_(comms), to_(to) {}

  // Call this for all ranks before any is added. The ranks of a communicator gather the same. If
  // they seem not to, the minority is wrong, or those that know of fewer rows.
  void look_at(const RankSeen& seen) {
    const RankLayers layers =
        layers_of(seen.rank, passes_of(seen), carriers_of(seen.process, comms_));
    for (const CommLayers& comm : layers.comms) {
      ++votes_[id_of(seen.process, comm)][signature_of(seen.process, comm)];
    }
  }

  void add(const RankSeen& seen) {
    const auto& [process, rank, steps] = seen;
    const Passes passes = passes_of(seen);
    const RankLayers layers = layers_of(rank, passes, carriers_of(process, comms_));
    const auto rank_steps = static_cast<std::uint64_t>(std::ranges::count_if(
        passes.steps, [&](const StepPasses& s) { return asked_.holds(s.step); }));
    std::vector<LayerGroup*> groups;
    std::map<Signature, std::size_t> alike;
    for (const CommLayers& comm : layers.comms) {
      Signature signature = signature_of(process, comm);
      if (signature != agreed(process, comm)) {
        groups.push_back(nullptr);
        continue;
      }
      std::get<2>(signature) = alike[signature]++;
      groups.push_back(&group_of(signature, comm));
      groups.back()->ranks.push_back(process.header.rank.value_or(-1));
      groups.back()->rank_steps += rank_steps;
      std::vector<RowNames>& names = names_[signature];
      names.resize(comm.rows.size());
      for (std::size_t i = 0; i < names.size(); ++i) names[i].add(comm.rows[i].names);
    }
    for (std::uint32_t i = 0; i < rank.calls.size(); ++i) {
      const CallKind& k = rank.kinds[rank.calls[i].kind];
      if (std::ranges::find(kLayerBuckets, k.bucket) == std::end(kLayerBuckets)) continue;
      const steps::Interval* step = steps::interval_at(steps, rank.calls[i].ts_ns);
      if (step == nullptr || !asked_.holds(step->step)) continue;
      const Amounts a = amounts(rank, i);
      const auto told = layers.places.find(i);
      const bool known = told != layers.places.end();
      if (known && groups[told->second.comm] != nullptr) {
        const RankLayers::Place& p = told->second;
        groups[p.comm]->rows[p.row].ops[static_cast<std::size_t>(p.op)] += a;
        continue;
      }
      const auto why = layers.none.find(i);
      const NoLayer left = known                      ? NoLayer::order
                           : why == layers.none.end() ? NoLayer::behind
                                                      : why->second;
      to_.left[left][static_cast<std::size_t>(k.bucket)] += a;
    }
  }

  void finish() {
    for (auto& [signature, group] : groups_) {
      name_rows(group.rows, names_[signature]);
      std::ranges::sort(group.ranks);
      to_.groups.push_back(std::move(group));
    }
    std::ranges::stable_sort(to_.groups, {}, [](const LayerGroup& g) { return g.ranks; });
  }

 private:
  using Id = std::pair<std::string, std::int64_t>;
  static Id id_of(const Process& rank, const CommLayers& comm) {
    const read::Comm& known = rank.comms.at(comm.comm);
    return {known.id, known.nranks};
  }

  const Signature& agreed(const Process& rank, const CommLayers& comm) const {
    const auto& votes = votes_.at(id_of(rank, comm));
    return std::ranges::max_element(votes, {},
                                    [](const auto& vote) {
                                      return std::pair(vote.second, std::get<1>(vote.first).size());
                                    })
        ->first;
  }

  static Amounts amounts(const LayerCalls& rank, std::uint32_t i) {
    const RankCall& call = rank.calls[i];
    const CallKind& k = rank.kinds[call.kind];
    Amounts a = {.calls = 1,
                 .count = k.count,
                 .elements = k.elements,
                 .bytes = k.bytes,
                 .host_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(call.dur_ns, 0))};
    if (const auto timed = rank.device_ns.find({k.comm, rank.seq[i]});
        timed != rank.device_ns.end()) {
      a.device_ns = timed->second;
      a.device_timed = 1;
    }
    return a;
  }

  LayerGroup& group_of(const Signature& signature, const CommLayers& comm) {
    const auto [known, added] = groups_.try_emplace(signature);
    LayerGroup& group = known->second;
    if (!added) return group;
    group.nranks = std::get<0>(signature);
    std::size_t places[2] = {};
    for (const RankRow& row : comm.rows) {
      group.rows.push_back({.unit = row.unit,
                            .place = ++places[row.unit ? 1 : 0],
                            .count = row.call.count,
                            .elements = row.call.elements,
                            .bytes = row.call.bytes,
                            .dtype = row.call.dtype});
    }
    return group;
  }

  StepRange asked_;
  const std::vector<CommSummary>& comms_;
  Layers& to_;
  std::map<Id, std::map<Signature, std::size_t>> votes_;  // number of ranks
  std::map<Signature, LayerGroup> groups_;                // references to them stay valid
  std::map<Signature, std::vector<RowNames>> names_;
};

// Adds what the totals have beyond what is told: calls outside of steps, or without a line.
void add_outside(Layers& layers, const Buckets& totals) {
  for (const Bucket bucket : kLayerBuckets) {
    const auto b = static_cast<std::size_t>(bucket);
    Amounts told;
    for (const auto& [why, buckets] : layers.left) told += buckets[b];
    for (const LayerGroup& group : layers.groups) {
      for (const LayerRow& row : group.rows) {
        for (std::size_t op = 0; op < kLayerOps; ++op) {
          if (bucket_of(static_cast<LayerOp>(op)) == bucket) told += row.ops[op];
        }
      }
    }
    const Amounts& all = totals[b];
    if (all.calls < told.calls || all.count < told.count || all.elements < told.elements ||
        all.bytes < told.bytes || all.host_ns < told.host_ns) {
      layers.adds_up = false;
      continue;
    }
    if (all.calls == told.calls) continue;
    layers.left[NoLayer::outside][b] += {.calls = all.calls - told.calls,
                                         .count = all.count - told.count,
                                         .elements = all.elements - told.elements,
                                         .bytes = all.bytes - told.bytes,
                                         .host_ns = all.host_ns - told.host_ns};
  }
}

}  // namespace

Bucket bucket_of(LayerOp op) {
  if (op == LayerOp::scattered) return Bucket::RESHARDING;
  return op == LayerOp::reduced ? Bucket::ALLREDUCE : Bucket::ALLGATHER;
}

namespace {

void find_layers(const collect::Lines& lines, const StepRange& asked, const Buckets& totals,
                 const std::vector<CommSummary>& comms, Layers& layers) {
  std::vector<RankSeen> ranks;
  for (const auto& [rank, steps] : layers.found.ranks) {
    const auto* calls = lines.of<LayerCalls>(rank);
    if (calls == nullptr) continue;
    const bool autograd =
        std::ranges::any_of(calls->threads, [](const auto& t) { return t.autograd(); });
    if (!autograd) layers.unnamed.push_back(rank);
    ranks.push_back({*rank, *calls, steps});
  }
  Merger merger(asked, comms, layers);
  for (const RankSeen& seen : ranks) merger.look_at(seen);
  for (const RankSeen& seen : ranks) merger.add(seen);
  merger.finish();
  add_outside(layers, totals);
}

}  // namespace

void want_layers(collect::Passes& passes, steps::Found found, const StepRange& asked,
                 const Buckets& totals, const std::vector<CommSummary>& comms, Layers& to) {
  to.found = std::move(found);
  if (to.found.how == steps::How::none) return add_outside(to, totals);
  passes.want(
      [](const Process& rank, collect::Collectors& all) { collect::want<LayerCalls>(rank, all); },
      [asked, &totals, &comms, &to](const collect::Lines& lines) {
        find_layers(lines, asked, totals, comms, to);
      });
}

}  // namespace tprof::stats
