// What each layer of a model moves: the repeating pattern within a step, as units of parameters
// that are gathered together (FSDP, ZeRO-3) and buckets of gradients that are reduced together
// (DDP).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collect/passes.h"
#include "stats/steps.h"
#include "stats/totals.h"

namespace tprof::stats {

struct CommSummary;

// forward, again: a unit is gathered by the thread that calls backward(), and by autograd's
// threads. scattered, reduced: its gradients.
enum class LayerOp { forward, again, scattered, reduced };
inline constexpr std::string_view kLayerOpNames[] = {"forward", "backward", "scattered", "reduced"};
inline constexpr std::size_t kLayerOps = std::size(kLayerOpNames);
Bucket bucket_of(LayerOp op);

// module: FSDP2's own ranges tell the module. range: the innermost NVTX range that is around all of
// its forward gathers, and around none of another unit. site: the innermost line of the program
// that they, and no other unit's, come from.
enum class NamedBy { none, module, range, site };
inline constexpr std::string_view kNamedByNames[] = {"", "module", "range", "site"};

struct LayerRow {
  bool unit = false;        // else a bucket
  std::size_t place = 0;    // from 1: units as the forward pass gathers them, buckets as they come
  std::uint64_t count = 0;  // API argument of a call
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  std::string dtype{};
  std::string name{};
  NamedBy named = NamedBy::none;
  std::array<read::Amounts, kLayerOps> ops{};  // sums over ranks and steps
};

// Ranks whose communicators have the same units and buckets.
struct LayerGroup {
  std::vector<std::int64_t> ranks{};
  std::int64_t nranks = 0;       // of each communicator
  std::uint64_t rank_steps = 0;  // steps with a backward pass, summed over ranks
  std::vector<LayerRow> rows{};
};

// Why a call is in no row. order: its pass is in another order than most, or nothing tells which of
// several units it is of. data: what is sent need not be parameters or gradients. behind: it is in
// no forward or backward pass of a step. outside: of steps; or it has no line.
enum class NoLayer { order, data, behind, outside };
inline constexpr std::string_view kNoLayerNames[] = {"order", "data", "behind", "outside"};

struct Layers {
  steps::Found found;
  std::vector<LayerGroup> groups{};
  std::map<NoLayer, Buckets>
      left{};           // with the rows they add up to the three buckets of the summary
  bool adds_up = true;  // false: `outside` is not known, as the ledger is older than the lines
  std::vector<const read::Process*> unnamed{};  // ranks that tell no forward and backward pass
};

// The buckets that layers are made of.
inline constexpr Bucket kLayerBuckets[] = {Bucket::ALLGATHER, Bucket::RESHARDING,
                                           Bucket::ALLREDUCE};

// From the lines of the next pass. `totals`: of what is asked for, which all calls of these buckets
// add up to. What is given by reference stays where it is until then.
void want_layers(collect::Passes& passes, steps::Found found, const StepRange& asked,
                 const Buckets& totals, const std::vector<CommSummary>& comms, Layers& to);

}  // namespace tprof::stats
