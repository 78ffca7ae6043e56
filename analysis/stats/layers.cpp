#include "stats/layers.h"

#include <algorithm>
#include <memory>

#include "stats/layer_merger.h"

namespace tprof::stats {
namespace {

using read::Amounts;
using read::Process;

// Finds the layers of a rank once its last line was read, and lets its calls go.
struct LayersOfRank : LayerCalls {
  LayersOfRank(const Process& rank, const std::vector<steps::Interval>& of_rank, Merger& all_ranks)
      : LayerCalls(rank), steps(of_rank), merger(all_ranks) {}

  void end() override {
    autograd = std::ranges::any_of(threads, [](const Thread& t) { return t.autograd(); });
    sums = merger.sums_of(rank_, *this, steps);
    let_go();
  }
  void state(team::Archive& archive) override { archive(autograd, sums); }
  void hand_over() override {
    merger.take(sums);
    sums = RankSums();
  }

  const std::vector<steps::Interval>& steps;
  Merger& merger;
  bool autograd = false;
  RankSums sums;
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

void want_layers(collect::Passes& passes, const steps::Found& found, const StepList& asked,
                 const Buckets& totals, const std::vector<CommSummary>& comms, Layers& to) {
  if (found.how == steps::How::none) return add_outside(to, totals);
  const auto merger = std::make_shared<Merger>(asked, comms, to);
  passes.want(
      [merger, &found](const Process& rank, collect::Collectors& all) {
        const auto steps = found.ranks.find(&rank);
        if (steps == found.ranks.end()) return;
        collect::want<LayersOfRank>(rank, all, steps->second, *merger);
      },
      [merger, &found, &totals, &to](const collect::Lines& lines) {
        for (const auto& [rank, steps] : found.ranks) {
          const auto* of_rank = lines.of<LayersOfRank>(rank);
          if (of_rank != nullptr && !of_rank->autograd) to.unnamed.push_back(rank);
        }
        merger->finish();
        add_outside(to, totals);
      });
}

}  // namespace tprof::stats
