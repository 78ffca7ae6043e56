#include "stats/pass_calls.h"

#include <algorithm>
#include <iterator>

#include "interpose/format/step_mark.h"
#include "stats/layers.h"

namespace tprof::stats {
namespace {

void add(std::uint64_t& bytes, const CallKind& kind) {
  bytes = read::saturated_sum(bytes, kind.bytes);
}

void add_ahead(CommCalls& comm, std::size_t pass, std::uint32_t place, const CallKind& kind) {
  if (kind.bucket == Bucket::ALLGATHER) {
    comm.passes[pass].gathers.push_back(place);
    comm.gathered.insert(kind.count);
    return;
  }
  comm.scatters_ahead = comm.scatters_ahead || kind.bucket == Bucket::RESHARDING;
  comm.activations.insert(kind.count);
}

void add_backward(CommCalls& comm, std::size_t pass, std::uint32_t place, const CallKind& kind,
                  bool gradient) {
  PassCalls& calls = comm.passes[pass];
  if (kind.bucket == Bucket::ALLREDUCE) {
    calls.reduces.push_back(place);
    if (gradient) add(comm.reduced_bytes, kind);
    return;
  }
  (kind.bucket == Bucket::ALLGATHER ? calls.again : calls.scatters).push_back(place);
  add(comm.other_bytes, kind);
}

}  // namespace

CallsOfPasses calls_of_passes(const RestCalls& rank, const Passes& passes) {
  CallsOfPasses calls{.least_gradient = passes.least_gradient};
  const auto see = [&](std::uint32_t place, bool ahead) {
    const CallKind& k = rank.kinds[rank.calls[place].kind];
    if (std::ranges::find(kLayerBuckets, k.bucket) == std::end(kLayerBuckets)) return;
    calls.all.push_back(place);
    if (k.bytes <= kScalarBytes) return;
    CommCalls& comm = calls.comms[k.comm];
    if (ahead) {
      add_ahead(comm, calls.steps.size(), place, k);
    } else {
      add_backward(comm, calls.steps.size(), place, k, passes.gradient(k));
    }
  };
  for (const StepPasses& s : passes.steps) {
    for (const Pass& pass : s.passes) {
      for (const std::uint32_t place : pass.before) see(place, true);
      for (const std::uint32_t place : pass.backward) see(place, false);
      for (const std::uint32_t place : pass.late) see(place, false);
      calls.steps.push_back(s.step);
    }
  }
  return calls;
}

}  // namespace tprof::stats
