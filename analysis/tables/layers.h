// Finds what each layer of a model moves. A layer is a position among the calls of a usual pass: a
// unit of parameters that are gathered together (FSDP, ZeRO-3), or a bucket of gradients that are
// reduced together (DDP).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "run/lines.h"
#include "tables/steps.h"
#include "tables/totals.h"

namespace tprof::tables {

struct CommSummary;

// The buckets of calls that may carry parameters or gradients.
inline constexpr Bucket kLayerBuckets[] = {Bucket::ALLGATHER, Bucket::RESHARDING,
                                           Bucket::ALLREDUCE};

// forward: the thread that calls backward() gathers a unit. again: autograd's threads gather it.
// scattered, reduced: its gradients are reduce-scattered or all-reduced.
enum class LayerOp { forward, again, scattered, reduced };
inline constexpr std::string_view kLayerOpNames[] = {"forward", "backward", "scattered", "reduced"};
inline constexpr std::size_t kLayerOps = std::size(kLayerOpNames);

// The source of a name: the innermost one around all forward gathers of a unit and no others.
// module: FSDP2's own ranges. range: NVTX ranges. site: lines of the program.
enum class NamedBy { none, module, range, site };
inline constexpr std::string_view kNamedByNames[] = {"", "module", "range", "site"};

// Equal on all ranks with the layer.
struct LayerKey {
  bool unit = false;        // false: a bucket
  std::size_t place = 0;    // from 1: units in the order of the forward pass, buckets in order
  std::uint64_t count = 0;  // the API's argument
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  text::Kept dtype{};

  auto operator<=>(const LayerKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct LayerRow : LayerKey {
  std::string name{};
  NamedBy named = NamedBy::none;
  std::array<read::Amounts, kLayerOps> ops{};  // sums over ranks and steps
  read::Amounts amounts{};                     // sum of all ops

  // Each name around forward gathers: around how many gathers, and how many other names it
  // contains.
  std::uint64_t gathers = 0;
  std::map<std::pair<NamedBy, std::string>, std::pair<std::uint64_t, std::uint64_t>> around{};
};

// Ranks whose communicators have the same units and buckets.
struct LayerGroup {
  std::vector<std::int64_t> ranks{};
  bool no_ranks = false;         // processes without a rank have them too
  std::int64_t nranks = 0;       // of each communicator
  std::uint64_t rank_steps = 0;  // steps with a backward pass, summed over ranks
  std::vector<LayerRow> rows{};
};

// Why a call is in no row. order: its pass has another number or order of calls of its size. data:
// it may carry something other than parameters or gradients. behind: it is in no forward or
// backward pass of a step. outside: it is in no step, or has no line.
enum class NoLayer { order, data, behind, outside };
inline constexpr std::string_view kNoLayerNames[] = {"order", "data", "behind", "outside"};

struct Layers {
  std::vector<LayerGroup> groups{};
  std::map<NoLayer, Buckets> left{};  // with the rows, these add up to the summary's three buckets
  bool adds_up = true;  // false: `outside` is unknown, as the ledger is older than the lines
  std::vector<const read::Process*> unnamed{};  // ranks without known autograd threads
};

// `totals`: the sums over all chosen calls of these buckets.
Layers layers_of(const run::Lines& lines, const steps::Found& found, const StepList& asked,
                 const Buckets& totals, const std::vector<CommSummary>& comms);

}  // namespace tprof::tables
