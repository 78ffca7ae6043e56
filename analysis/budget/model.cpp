// The sources of the formulas: PyTorch's test_fully_shard_comm.py and test_fsdp_comm.py (units,
// calls), _fsdp_collectives.py and _flat_param.py (sizes), reducer.cpp (DDP); DeepSpeed's
// stage3.py, partition_parameters.py, coalesced_collectives.py, stage_1_and_2.py; Megatron-LM
// (Shoeybi et al. 2019, section 3).
#include "budget/model.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "read/rows.h"

namespace tprof::budget {
namespace {

constexpr double kAny = std::numeric_limits<double>::infinity();
// Each parameter is padded to a multiple of the ranks. A transformer layer has at most this many
// parameters. FSDP2 pads whole rows: only --tolerance covers that.
constexpr double kTensorsOfUnit = 16;

struct Amount {
  Range calls{};
  Range elements{};
  Range each{0, 0};  // as Limit has it, in elements
};
using MayMove = std::optional<Amount>;

// A model with derived sizes.
struct Sizes {
  const Model& m;
  double k = reductions(m);
  double padding = std::max(0.0, m.shards - 1) * kTensorsOfUnit * (m.layers + 1);  // elements

  // Calls: one for each layer, and one for the root, unless all of its weights are in units of
  // their own.
  Range units(double least, double most) const {
    if (m.layers == 0) return {};
    return {least * (m.layers + (m.root_params > 0)), most * (m.layers + (m.root_params != 0))};
  }
  Range whole(double times) const { return {times * m.params, times * (m.params + padding)}; }
  // A gather is counted as the whole unit. A single rank has nothing to gather or scatter: newer
  // versions of PyTorch, and DeepSpeed, then make no call.
  Amount shared(Amount amount) const {
    if (m.shards == 1 || m.all_reduced) {
      amount.calls.least = amount.elements.least = 0;
      amount.each = {0, 0};
    }
    return amount;
  }
  // Bytes of a shard's element on the host.
  double on_host() const { return std::min(4.0, size_of(m.dtype)) / m.shards; }
  bool offloads() const { return m.offload && m.shards != 0; }
};

// FSDP1 and FSDP2: the root stays gathered between forward and backward pass, unless
// reshard_after_forward=True was set for it (since PyTorch 2.8). In no_sync(), FSDP1's
// SHARD_GRAD_OP and set_reshard_after_backward(False) gather in the first micro-batch only.
Amount gathers_of_fsdp(const Sizes& s) {
  const Model& m = s.m;
  const double passes = m.micro_batches;
  if (m.keeps) return s.shared({s.units(1, passes), {m.params, s.whole(passes).most}});
  Range calls = s.units(2 * passes, 2 * passes);
  if (m.layers != 0 && m.root_params > 0) calls.least -= passes;
  const bool known = m.root_params >= 0;
  const double kept = known ? m.root_params + m.root_more : m.params;
  return s.shared({calls,
                   {passes * (2 * m.params - kept), s.whole(2 * passes).most},
                   known && m.layers != 0 ? Range{kept, m.root_params} : Range{0, 0}});
}

constexpr unsigned bit(Way way) {
  return 1U << static_cast<unsigned>(way);
}
constexpr unsigned kFsdp = bit(Way::fsdp) | bit(Way::hsdp);
constexpr unsigned kZero12 = bit(Way::zero1) | bit(Way::zero2);
constexpr unsigned kZero3 = bit(Way::zero3);

// A row for a bucket of some ways. Rows of the same bucket add up.
struct Formula {
  unsigned ways;
  Bucket bucket;
  std::string Model::*dtype;  // null: the elements are bytes
  MayMove (*amount)(const Sizes&);
};
const Formula kFormulas[] = {
    // Each gradient is in one bucket.
    {bit(Way::ddp), Bucket::ALLREDUCE, &Model::reduce_dtype,
     [](const Sizes& s) -> MayMove {
       return Amount{.elements = {s.k * s.m.params, s.k * s.m.params}};
     }},
    // ZeRO-1 and ZeRO-2 reduce buckets (never with ncclReduceScatter), and gather the updated
    // parts.
    {kZero12, Bucket::ALLREDUCE, &Model::reduce_dtype,
     [](const Sizes& s) -> MayMove { return Amount{.elements = s.whole(s.k)}; }},
    {kZero12, Bucket::ALLGATHER, &Model::dtype,
     [](const Sizes& s) -> MayMove { return s.shared({.elements = s.whole(1)}); }},
    // ZeRO-3 gathers what a module needs in one call, so no formula gives the number of calls.
    // Small parameters, and those used again soon, stay gathered (param_persistence_threshold,
    // max_reuse_distance).
    {kZero3, Bucket::ALLGATHER, &Model::dtype,
     [](const Sizes& s) -> MayMove {
       const double most = s.m.micro_batches * (s.m.keeps ? 1 : 2);
       return s.shared({.elements = {s.m.params, s.whole(most).most}});
     }},
    {kFsdp, Bucket::ALLGATHER, &Model::dtype,
     [](const Sizes& s) -> MayMove { return gathers_of_fsdp(s); }},
    // One call for each reduction of each unit. A rank gets its shard of the sum.
    {kFsdp | kZero3, Bucket::RESHARDING, &Model::reduce_dtype,
     [](const Sizes& s) -> MayMove {
       if (s.m.all_reduced) return Amount{{0, 0}, {0, 0}};
       const bool fsdp = std::ranges::count(s.m.ways, Way::zero3) == 0;
       return s.shared({fsdp ? s.units(s.k, s.k) : Range{}, s.whole(s.k)});
     }},
    {kFsdp | kZero3, Bucket::ALLREDUCE, &Model::reduce_dtype,
     [](const Sizes& s) {
       return s.m.all_reduced ? MayMove(Amount{.elements = s.whole(s.k)}) : std::nullopt;
     }},
    // Replicas of a shard all-reduce it after each reduce-scatter, or in the last micro-batch only
    // (FSDP2's set_requires_all_reduce).
    {bit(Way::hsdp), Bucket::ALLREDUCE, &Model::reduce_dtype,
     [](const Sizes& s) -> MayMove {
       if (s.m.all_reduced) return std::nullopt;
       const double shards = std::max(1.0, s.m.shards);
       return Amount{s.units(1, s.k), {s.whole(1).least / shards, s.whole(s.k).most / shards}};
     }},
    {bit(Way::tp), Bucket::ALLREDUCE, &Model::dtype,
     [](const Sizes& s) -> MayMove {
       const double calls = 2 * s.m.reduced_in_layer * s.m.layers * s.m.micro_batches;
       const double elements = calls * s.m.tokens * s.m.hidden;
       return Amount{{calls, calls}, {elements, elements}};
     }},
    // Offloaded shards come from the host in their own type, and gradients go there. FSDP copies
    // for each gather; DeepSpeed once per step after its optimizer, and for each gather too if
    // parameters are offloaded. Batches are copied too, so there is no upper bound.
    {kFsdp | kZero12 | kZero3, Bucket::H2D, nullptr,
     [](const Sizes& s) -> MayMove {
       if (!s.offloads()) return std::nullopt;
       const bool fsdp = std::ranges::any_of(
           s.m.ways, [](Way way) { return way == Way::fsdp || way == Way::hsdp; });
       const double gathered = fsdp ? gathers_of_fsdp(s).elements.least : s.m.params;
       return Amount{.elements = {gathered * s.on_host(), kAny}};
     }},
    {kFsdp | kZero12 | kZero3, Bucket::D2H, nullptr,
     [](const Sizes& s) -> MayMove {
       if (!s.offloads()) return std::nullopt;
       return Amount{.elements = {s.m.params * s.on_host(), s.whole(s.k).most * 4 / s.m.shards}};
     }},
};

}  // namespace

double reductions(const Model& m) {
  if (m.reductions != 0) return m.reductions;
  const bool each =
      std::ranges::any_of(m.ways, [](Way way) { return way == Way::zero2 || way == Way::zero3; });
  const bool every =
      m.accumulate == Accumulate::every || (m.accumulate == Accumulate::by_way && each);
  return every ? m.micro_batches : 1;
}

std::vector<Limit> expected(const Model& m) {
  std::map<Bucket, Limit> limits;
  for (const Way way : m.ways) {
    for (const Formula& f : kFormulas) {
      if ((f.ways & bit(way)) == 0) continue;
      const MayMove amount = f.amount({m});
      if (!amount) continue;
      const double size = f.dtype == nullptr ? 1 : size_of(m.*f.dtype);
      Limit& limit =
          limits.try_emplace(f.bucket, Limit{f.bucket, {}, {}, {0, 0}, {0, 0}}).first->second;
      limit.calls = limit.calls + amount->calls;
      for (const auto& [to, elements] :
           {std::pair(&limit.bytes, &amount->elements), {&limit.each, &amount->each}}) {
        *to = *to + Range{elements->least * size * (1 - m.tolerance),
                          elements->most * size * (1 + m.tolerance)};
      }
    }
  }
  std::vector<Limit> all;
  for (const auto& [bucket, limit] : limits) all.push_back(limit);
  return all;
}

Range Limit::bytes_with(double made) const {
  if (each.most == 0) return bytes;
  const double n = std::clamp(made, calls.least, calls.most);
  return {bytes.least + (n - calls.least) * each.least, bytes.most - (calls.most - n) * each.most};
}

bool is_small(Bucket bucket, std::int64_t bytes_class, const Model& m) {
  const double activations = m.tokens * m.hidden * size_of(m.dtype);
  const double least = bucket != Bucket::ALLREDUCE ? 64
                       : activations == 0          ? 16384
                                                   : std::min(16384.0, activations / 4);
  return std::ldexp(2, static_cast<int>(bytes_class)) <= least;
}

double size_of(std::string_view dtype) {
  return static_cast<double>(read::element_size(dtype));
}

}  // namespace tprof::budget
