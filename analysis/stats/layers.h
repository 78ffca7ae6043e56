// Finds what each layer of a model moves. A layer is a place among the calls of a usual pass: a
// unit of parameters that are gathered together (FSDP, ZeRO-3), or a bucket of gradients that are
// reduced together (DDP).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "run/lines.h"
#include "stats/layer_names.h"
#include "stats/rank_calls.h"
#include "stats/steps.h"
#include "stats/totals.h"

namespace tprof::stats {

struct CommSummary;

// forward: a unit is gathered by the thread that calls backward(). again: it is gathered by
// autograd's threads. scattered, reduced: its gradients are reduce-scattered or all-reduced.
enum class LayerOp { forward, again, scattered, reduced };
inline constexpr std::string_view kLayerOpNames[] = {"forward", "backward", "scattered", "reduced"};
inline constexpr std::size_t kLayerOps = std::size(kLayerOpNames);
Bucket bucket_of(LayerOp op);

struct LayerRow {
  bool unit = false;        // else a bucket
  std::size_t place = 0;    // from 1: units as the forward pass gathers them, buckets as they come
  std::uint64_t count = 0;  // API argument of a call
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  std::string dtype{};
  std::string name{};
  NamedBy named = NamedBy::none;
  RowNames names{};                            // of which it is one
  std::array<read::Amounts, kLayerOps> ops{};  // sums over ranks and steps
  read::Amounts amounts{};                     // of all of these together
};

// Ranks whose communicators have the same units and buckets.
struct LayerGroup {
  std::vector<std::int64_t> ranks{};
  std::int64_t nranks = 0;       // of each communicator
  std::uint64_t rank_steps = 0;  // steps with a backward pass, summed over ranks
  std::vector<LayerRow> rows{};
};

// Why a call is in no row. order: its pass has another number of calls of its size, or in another
// order. data: it may carry something else than parameters or gradients. behind: it is in no
// forward or backward pass of a step. outside: it is in no step, or has no line.
enum class NoLayer { order, data, behind, outside };
inline constexpr std::string_view kNoLayerNames[] = {"order", "data", "behind", "outside"};

struct Layers {
  std::vector<LayerGroup> groups{};
  std::map<NoLayer, Buckets> left{};  // with the rows, they add up to the summary's three buckets
  bool adds_up = true;  // false: `outside` is not known, as the ledger is older than the lines
  std::vector<const read::Process*> unnamed{};  // ranks without known autograd threads
};

// `totals` are those of what is asked for: all calls of these buckets add up to them.
Layers layers_of(const run::Lines& lines, const steps::Found& found, const StepList& asked,
                 const Buckets& totals, const std::vector<CommSummary>& comms);

}  // namespace tprof::stats
