// The sources of the formulas: PyTorch's test_fully_shard_comm.py and test_fsdp_comm.py (units,
// calls), _fsdp_collectives.py and _flat_param.py (sizes), reducer.cpp (DDP); DeepSpeed's
// stage3.py, partition_parameters.py, coalesced_collectives.py, stage_1_and_2.py; Megatron-LM
// (Shoeybi et al. 2019, section 3).
#include "budget/model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "interpose/format/dtypes.h"

namespace tprof::budget {
namespace {

constexpr double kAny = std::numeric_limits<double>::infinity();
// Each parameter is padded to a multiple of the ranks. A layer of a transformer has so many at
// most. FSDP2 pads whole rows: only --tolerance covers that.
constexpr double kTensorsOfUnit = 16;

struct Amount {
  Range calls;
  Range elements;
  Range each{0, 0};  // as Expected has it, in elements
};

class Formulas {
 public:
  explicit Formulas(const Model& m) : m_(m), reductions_(reductions(m)) {
    padding_ = std::max(0.0, m.shards - 1) * kTensorsOfUnit * (m.layers + 1);
  }

  std::vector<Expected> all() {
    for (const Way way : m_.ways) add(way);
    std::vector<Expected> found;
    for (const auto& [bucket, e] : lines_) {
      found.push_back(e);
      for (Range* bytes : {&found.back().bytes, &found.back().each}) {
        *bytes = {bytes->least * (1 - m_.tolerance), bytes->most * (1 + m_.tolerance)};
      }
    }
    return found;
  }

 private:
  void put(Bucket bucket, const Amount& amount, double size) {
    const auto [known, fresh] = lines_.try_emplace(bucket, Expected{bucket, {0, 0}, {0, 0}});
    known->second.calls = known->second.calls + amount.calls;
    known->second.bytes = known->second.bytes + amount.elements * size;
    known->second.each = known->second.each + amount.each * size;
  }
  // Calls: one for each layer, and for the root. A root all of whose weights are in layers that are
  // units of their own makes none.
  Range units(double least, double most) const {
    if (m_.layers == 0) return {};
    return {least * (m_.layers + (m_.root_params > 0)), most * (m_.layers + (m_.root_params != 0))};
  }
  Range whole(double times) const { return {times * m_.params, times * (m_.params + padding_)}; }

  // A gather is of the whole unit, whatever part of it a rank has. One rank has nothing to gather:
  // newer versions of PyTorch, and DeepSpeed, then call nothing.
  void gathers(Amount amount, bool exact_calls = true) {
    if (!exact_calls) amount.calls = {};
    if (m_.shards == 1 || m_.all_reduced) {
      amount.calls.least = amount.elements.least = 0;
      amount.each = {0, 0};
    }
    put(Bucket::ALLGATHER, amount, size_of(m_.dtype));
  }

  // Shards come from the host, in their own type, and gradients go there: FSDP's for each gather,
  // DeepSpeed's once in a step behind its optimizer there, and for each gather too where parameters
  // are there. Batches come in like this as well, so there is no bound above.
  void offloaded(double gathered) {
    if (!m_.offload || m_.shards == 0) return;
    const double size = std::min(4.0, size_of(m_.dtype)) / m_.shards;
    put(Bucket::H2D, {{}, {gathered * size, kAny}}, 1);
    put(Bucket::D2H, {{}, {m_.params * size, whole(reductions_).most * 4 / m_.shards}}, 1);
  }

  // Each reduction of each unit. A rank gets its shard of the sum.
  void scatters(bool exact_calls) {
    const double k = reductions_;
    const double size = size_of(m_.reduce_dtype);
    Amount amount{exact_calls ? units(k, k) : Range{}, whole(k)};
    if (m_.all_reduced) {
      put(Bucket::RESHARDING, {{0, 0}, {0, 0}}, size);
      return put(Bucket::ALLREDUCE, {{}, whole(k)}, size);
    }
    if (m_.shards == 1) amount.calls.least = amount.elements.least = 0;
    put(Bucket::RESHARDING, amount, size);
  }

  // FSDP1 and FSDP2: the root stays gathered from the forward pass to the backward, but where
  // reshard_after_forward=True was said of it (PyTorch 2.8 on). In no_sync() FSDP1's SHARD_GRAD_OP,
  // and set_reshard_after_backward(False), gather in the first micro-batch only.
  void fsdp() {
    const double passes = m_.micro_batches;
    if (m_.reshard) {
      Range calls = units(2 * passes, 2 * passes);
      if (m_.layers != 0 && m_.root_params > 0) calls.least -= passes;
      const bool known = m_.root_params >= 0;
      const double kept = known ? m_.root_params + m_.root_more : m_.params;
      gathers({calls,
               {passes * (2 * m_.params - kept), whole(2 * passes).most},
               known && m_.layers != 0 ? Range{kept, m_.root_params} : Range{0, 0}});
    } else {
      gathers({units(1, passes), {m_.params, whole(passes).most}});
    }
    scatters(true);
    offloaded(lines_.at(Bucket::ALLGATHER).bytes.least / size_of(m_.dtype));
  }

  // ZeRO-3 gathers what a module needs together, so the number of calls is nobody's formula.
  // Parameters that are few or used again soon stay gathered (param_persistence_threshold,
  // max_reuse_distance).
  void zero3() {
    const double most = m_.micro_batches * (m_.reshard ? 2 : 1);
    gathers({{}, {m_.params, whole(most).most}}, false);
    scatters(false);
    offloaded(m_.params);
  }

  // ZeRO-1 and ZeRO-2 reduce buckets (never with ncclReduceScatter), and gather what the optimizer
  // has made of its part.
  void zero12() {
    put(Bucket::ALLREDUCE, {{}, whole(reductions_)}, size_of(m_.reduce_dtype));
    gathers({{}, whole(1)}, false);
    offloaded(m_.params);
  }

  void add(Way way) {
    switch (way) {
      case Way::ddp:  // each gradient is in one bucket
        return put(Bucket::ALLREDUCE, {{}, {reductions_ * m_.params, reductions_ * m_.params}},
                   size_of(m_.reduce_dtype));
      case Way::zero1:
      case Way::zero2:
        return zero12();
      case Way::zero3:
        return zero3();
      case Way::fsdp:
        return fsdp();
      case Way::hsdp: {
        fsdp();
        // Replicas of a shard all-reduce it behind each reduce-scatter, or (FSDP2's
        // set_requires_all_reduce) in the last micro-batch only.
        if (m_.all_reduced) return;
        const double shards = std::max(1.0, m_.shards);
        const Range elements = {whole(1).least / shards, whole(reductions_).most / shards};
        return put(Bucket::ALLREDUCE, {units(1, reductions_), elements}, size_of(m_.reduce_dtype));
      }
      case Way::tp: {
        const double calls = 2 * m_.reduced_in_layer * m_.layers * m_.micro_batches;
        const double elements = calls * m_.tokens * m_.hidden;
        return put(Bucket::ALLREDUCE, {{calls, calls}, {elements, elements}}, size_of(m_.dtype));
      }
    }
  }

  const Model& m_;
  double reductions_;
  double padding_ = 0;  // elements
  std::map<Bucket, Expected> lines_;
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

std::vector<Expected> expected(const Model& model) {
  return Formulas(model).all();
}

Range bytes_of(double made, const Range& calls, const Range& bytes, const Range& each) {
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
  const auto* known = std::ranges::find(kDtypes, dtype, &DtypeInfo::name);
  return known == std::end(kDtypes) ? 0 : static_cast<double>(known->size);
}

}  // namespace tprof::budget
