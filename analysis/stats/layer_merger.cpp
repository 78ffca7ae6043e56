#include "stats/layer_merger.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>

#include "stats/rank_layers.h"

namespace tprof::stats {
namespace {

using read::Amounts;
using read::Process;

Signature signature_of(std::int64_t nranks, const CommLayers& comm) {
  Signature s{nranks, {}};
  for (const RankRow& row : comm.rows) {
    s.second.emplace_back(row.unit, row.call.count, row.call.dtype);
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

Amounts amounts_of_call(const LayerCalls& rank, std::uint32_t i) {
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

CommSums without_calls(const Process& process, const CommLayers& comm, std::uint64_t rank_steps) {
  const std::int64_t rank = process.header.rank.value_or(-1);
  CommSums sums{
      .shown = {rank, process.header.base_time_ns}, .ranks = {rank}, .rank_steps = rank_steps};
  std::size_t places[2] = {};
  for (const RankRow& row : comm.rows) {
    sums.rows.push_back({.unit = row.unit,
                         .place = ++places[row.unit ? 1 : 0],
                         .count = row.call.count,
                         .elements = row.call.elements,
                         .bytes = row.call.bytes,
                         .dtype = row.call.dtype});
    sums.names.push_back(row.names);
  }
  return sums;
}

}  // namespace

void CommSums::add(const CommSums& more) {
  if (ranks.empty()) {
    *this = more;
    return;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (more.shown < shown) {
      rows[i].elements = more.rows[i].elements;
      rows[i].bytes = more.rows[i].bytes;
    }
    for (std::size_t op = 0; op < kLayerOps; ++op) rows[i].ops[op] += more.rows[i].ops[op];
    names[i].add(more.names[i]);
  }
  shown = std::min(shown, more.shown);
  ranks.insert(ranks.end(), more.ranks.begin(), more.ranks.end());
  rank_steps += more.rank_steps;
}

RankSums Merger::sums_of(const Process& process, const LayerCalls& rank,
                         const std::vector<steps::Interval>& steps) const {
  Places by_time(rank.calls.size());
  std::iota(by_time.begin(), by_time.end(), 0U);
  std::ranges::stable_sort(by_time, {}, [&](std::uint32_t i) { return rank.calls[i].ts_ns; });
  const Passes passes = passes_of(rank, by_time, steps);
  const RankLayers layers = layers_of(rank, passes, carriers_of(process, comms_));
  const auto rank_steps = static_cast<std::uint64_t>(std::ranges::count_if(
      passes.steps, [&](const StepPasses& s) { return asked_.holds(s.step); }));
  RankSums sums;
  std::map<Signature, std::vector<CommId>> alike;
  for (const CommLayers& comm : layers.comms) {
    const read::Comm& known = process.comms.at(comm.comm);
    CommId id(known.id, known.nranks);
    Signature signature = signature_of(known.nranks, comm);
    std::vector<CommId>& earlier = alike[signature];
    sums.comms.emplace_back(CommKey{id, std::move(signature), earlier},
                            without_calls(process, comm, rank_steps));
    earlier.push_back(std::move(id));
  }
  for (std::uint32_t i = 0; i < rank.calls.size(); ++i) {
    const CallKind& k = rank.kinds[rank.calls[i].kind];
    if (std::ranges::find(kLayerBuckets, k.bucket) == std::end(kLayerBuckets)) continue;
    const steps::Interval* step = steps::interval_at(steps, rank.calls[i].ts_ns);
    if (step == nullptr || !asked_.holds(step->step)) continue;
    const Amounts a = amounts_of_call(rank, i);
    if (const auto told = layers.places.find(i); told != layers.places.end()) {
      const RankLayers::Place& p = told->second;
      sums.comms[p.comm].second.rows[p.row].ops[static_cast<std::size_t>(p.op)] += a;
      continue;
    }
    const auto why = layers.none.find(i);
    const NoLayer left = why == layers.none.end() ? NoLayer::behind : why->second;
    sums.left[left][static_cast<std::size_t>(k.bucket)] += a;
  }
  return sums;
}

void Merger::take(const RankSums& rank) {
  for (const auto& [key, sums] : rank.comms) all_[key].add(sums);
  for (const auto& [why, buckets] : rank.left) stats::add(to_.left[why], buckets);
}

void Merger::finish() {
  const std::map<CommId, Signature> agreed = agreed_ones();
  std::map<std::pair<Signature, std::size_t>, CommSums> groups;
  for (const auto& [key, sums] : all_) {
    const Signature& signature = key.signature;
    if (agreed.at(key.id) != signature) {
      leave(sums);
      continue;
    }
    const auto before = std::ranges::count_if(
        key.earlier, [&](const CommId& id) { return agreed.at(id) == signature; });
    groups[{signature, static_cast<std::size_t>(before)}].add(sums);
  }
  for (auto& [signature, sums] : groups) {
    name_rows(sums.rows, sums.names);
    std::ranges::sort(sums.ranks);
    to_.groups.push_back({.ranks = std::move(sums.ranks),
                          .nranks = signature.first.first,
                          .rank_steps = sums.rank_steps,
                          .rows = std::move(sums.rows)});
  }
  std::ranges::stable_sort(to_.groups, {}, [](const LayerGroup& g) { return g.ranks; });
}

std::map<CommId, Signature> Merger::agreed_ones() const {
  std::map<CommId, std::map<Signature, std::size_t>> votes;  // number of ranks
  for (const auto& [key, sums] : all_) votes[key.id][key.signature] += sums.ranks.size();
  std::map<CommId, Signature> agreed;
  for (const auto& [id, all] : votes) {
    agreed[id] = std::ranges::max_element(all, {}, [](const auto& vote) {
                   return std::pair(vote.second, vote.first.second.size());
                 })->first;
  }
  return agreed;
}

void Merger::leave(const CommSums& sums) {
  for (const LayerRow& row : sums.rows) {
    for (std::size_t op = 0; op < kLayerOps; ++op) {
      if (row.ops[op].calls == 0) continue;
      const auto bucket = static_cast<std::size_t>(bucket_of(static_cast<LayerOp>(op)));
      to_.left[NoLayer::order][bucket] += row.ops[op];
    }
  }
}

}  // namespace tprof::stats
