#include "stats/layers.h"

#include <algorithm>
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
using CommId = std::pair<std::string, std::int64_t>;  // of a communicator, and its size

// The layers of one rank.
struct RankSums {
  std::vector<std::pair<CommId, LayerGroup>> comms{};
  std::map<NoLayer, Buckets> left{};
};

// The ranks of a group have this in common: the size of a communicator, and its rows.
using Shape = std::pair<
    std::int64_t,
    std::vector<std::tuple<bool, std::uint64_t, std::uint64_t, std::uint64_t, std::string>>>;

Shape shape_of(const LayerGroup& group) {
  Shape shape{group.nranks, {}};
  for (const LayerRow& r : group.rows) {
    shape.second.emplace_back(r.unit, r.count, r.elements, r.bytes, r.dtype);
  }
  return shape;
}

void merge(LayerGroup& to, const LayerGroup& more) {
  if (to.rows.empty()) {
    to = more;
    return;
  }
  to.ranks.insert(to.ranks.end(), more.ranks.begin(), more.ranks.end());
  to.rank_steps += more.rank_steps;
  for (std::size_t i = 0; i < to.rows.size(); ++i) {
    to.rows[i].names += more.rows[i].names;
    for (std::size_t op = 0; op < kLayerOps; ++op) to.rows[i].ops[op] += more.rows[i].ops[op];
  }
}

template <typename Group, typename See>
void each_op(Group& group, const See& see) {
  for (auto& row : group.rows) {
    for (std::size_t op = 0; op < kLayerOps; ++op) {
      see(bucket_of(static_cast<LayerOp>(op)), row.ops[op]);
    }
  }
}

// Adds up what ranks hand over.
struct Merger {
  // The ranks of a communicator gather the same. If they seem not to, the minority is wrong, or
  // those that know of fewer rows.
  void finish() {
    std::map<Shape, LayerGroup> groups;
    for (auto& [id, seen] : comms) {
      const auto agreed = std::ranges::max_element(seen, {}, [](const auto& entry) {
        return std::pair(entry.second.ranks.size(), entry.second.rows.size());
      });
      for (const auto& entry : seen) {
        if (&entry == &*agreed) {
          merge(groups[entry.first], entry.second);
          continue;
        }
        each_op(entry.second, [&](Bucket bucket, const Amounts& a) {
          if (a.calls != 0) to.left[NoLayer::order][static_cast<std::size_t>(bucket)] += a;
        });
      }
    }
    for (auto& [shape, group] : groups) {
      std::vector<const RowNames*> names;
      for (const LayerRow& row : group.rows) names.push_back(&row.names);
      const auto named = names_of(names);
      for (std::size_t i = 0; i < named.size(); ++i) {
        std::tie(group.rows[i].named, group.rows[i].name) = named[i];
        for (const Amounts& a : group.rows[i].ops) group.rows[i].amounts += a;
      }
      std::ranges::sort(group.ranks);
      const auto again = std::ranges::unique(group.ranks);
      group.ranks.erase(again.begin(), again.end());
      to.groups.push_back(std::move(group));
    }
    std::ranges::stable_sort(to.groups, {}, &LayerGroup::ranks);
  }

  Layers& to;
  StepList asked;
  std::set<CommId> activations{};  // what communicators carry whose names say so
  std::map<CommId, std::map<Shape, LayerGroup>> comms{};
};

std::set<CommId> activations_of(const std::vector<CommSummary>& comms) {
  std::set<CommId> all;
  for (const CommSummary& c : comms) {
    const bool named =
        c.role == "tensor" || c.role == "sequence" || c.role == "context" || c.role == "pipeline";
    if (named && !c.role_guessed) all.emplace(c.id, c.nranks);
  }
  return all;
}

// Finds the layers of a rank once its last line was read, and lets its calls go.
struct LayersOfRank : RankCalls {
  LayersOfRank(const Process& rank, const std::vector<steps::Interval>& of_rank, Merger& all_ranks)
      : RankCalls(rank), steps(of_rank), merger(all_ranks) {
    names_ranges_ = true;
  }

  void device_time(const read::DeviceTime& t) {
    if (t.calls != 1 || !t.comm || !t.seq || device_ns.size() == kMost) return;
    device_ns[{*t.comm, *t.seq}] = static_cast<std::uint64_t>(std::max<std::int64_t>(t.dur_ns, 0));
  }
  void metadata(const read::Line& line) { sites.add(rank_, line); }

  void end() {
    autograd = std::ranges::any_of(threads, [](const Thread& t) { return t.autograd(); });
    add_up();
    let_go();
    device_ns.clear();
    sites = SiteLines();
  }
  void add_to(Merger& ranks) const {
    for (const auto& [id, group] : sums.comms) merge(ranks.comms[id][shape_of(group)], group);
    for (const auto& [why, buckets] : sums.left) stats::add(ranks.to.left[why], buckets);
    if (!autograd) ranks.to.unnamed.push_back(&rank_);
  }

  void add_up() {
    std::set<std::int64_t> carriers;
    for (const auto& [number, comm] : rank_.comms) {
      const bool activations = merger.activations.contains({comm.id, comm.nranks});
      if (comm.known() && comm.nranks > 1 && !activations) carriers.insert(number);
    }
    const Passes passes = passes_of(*this, steps);
    const auto rank_steps = static_cast<std::uint64_t>(std::ranges::count_if(
        passes.all, [&](const Pass& p) { return p.last && merger.asked.holds(p.step); }));
    RankLayers layers = layers_of(*this, passes, carriers);
    for (auto& [number, rows] : layers.comms) {
      const read::Comm& comm = rank_.comms.at(number);
      LayerGroup of_comm = {{rank_.header.rank.value_or(-1)}, comm.nranks, rank_steps, {}};
      of_comm.rows = std::move(rows);
      sums.comms.emplace_back(CommId(comm.id, comm.nranks), std::move(of_comm));
    }
    for (std::uint32_t i = 0; i < calls.size(); ++i) {
      const steps::Interval* step = steps::interval_at(steps, calls[i].ts_ns);
      if (!moves_layers(kind(i)) || step == nullptr || !merger.asked.holds(step->step)) continue;
      const RankLayers::Told& told = layers.told[i];
      if (!told.row) {
        sums.left[told.none][static_cast<std::size_t>(kind(i).bucket)] += timed(i);
        continue;
      }
      LayerRow& row = sums.comms[told.row->first].second.rows[told.row->second];
      row.ops[static_cast<std::size_t>(told.op)] += timed(i);
      if (told.op == LayerOp::forward) row.names.add(*this, sites, i);
    }
  }

  Amounts timed(std::uint32_t i) const {
    Amounts a = amounts(i);
    const auto known = device_ns.find({kind(i).comm, calls[i].seq});
    if (known == device_ns.end()) return a;
    a.device_ns = known->second;
    a.device_timed = 1;
    return a;
  }

  const std::vector<steps::Interval>& steps;
  Merger& merger;
  std::map<std::pair<std::int64_t, std::uint64_t>, std::uint64_t> device_ns;  // by comm and number
  SiteLines sites;
  bool autograd = false;
  RankSums sums;
};

// Adds what the totals have beyond what is told: calls outside of steps, or without a line.
void add_outside(Layers& layers, const Buckets& totals) {
  Buckets told{};
  for (const auto& [why, buckets] : layers.left) stats::add(told, buckets);
  for (const LayerGroup& group : layers.groups) {
    each_op(group, [&](Bucket b, const Amounts& a) { told[static_cast<std::size_t>(b)] += a; });
  }
  for (const Bucket bucket : kLayerBuckets) {
    const auto b = static_cast<std::size_t>(bucket);
    const std::optional<Amounts> outside = without(totals[b], told[b]);
    layers.adds_up = layers.adds_up && outside;
    if (outside && outside->calls != 0) layers.left[NoLayer::outside][b] += *outside;
  }
}

}  // namespace

Bucket bucket_of(LayerOp op) {
  if (op == LayerOp::scattered) return Bucket::RESHARDING;
  return op == LayerOp::reduced ? Bucket::ALLREDUCE : Bucket::ALLGATHER;
}

Layers layers_of(const run::Lines& lines, const steps::Found& found, const StepList& asked,
                 const Buckets& totals, const std::vector<CommSummary>& comms) {
  Layers layers;
  if (found.how != steps::How::none) {
    Merger merger{layers, asked, activations_of(comms)};
    lines.each(
        [&](const Process& rank) {
          const auto steps = found.ranks.find(&rank);
          return steps == found.ranks.end()
                     ? std::nullopt
                     : std::optional<LayersOfRank>(std::in_place, rank, steps->second, merger);
        },
        [&](const LayersOfRank& rank) { rank.add_to(merger); });
    merger.finish();
  }
  add_outside(layers, totals);
  return layers;
}

}  // namespace tprof::stats
