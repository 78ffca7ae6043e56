// Counts the exposed time of a rank's collectives, and what of it an earlier all-gather would hide.
#include <algorithm>
#include <map>
#include <utility>

#include "why/rank_lines.h"

namespace tprof::why {
namespace {

// A call that begins on the device so soon after the host made it had nothing to wait for.
constexpr std::int64_t kAtOnceNs = 50'000;

}  // namespace

// Walks the collectives in the order of their calls. A collective is hidden while the device
// computes, and also while another call waits for a rank, as the step would not get on without it.
void RankLines::count_exposed(const Spans& hiding) {
  struct Comm {
    std::int64_t free_ns = INT64_MIN;
    bool reduced = false;
    std::size_t step = SIZE_MAX;
    std::uint64_t passes = 0;
  };
  std::map<std::int64_t, Comm> comms;
  Cover hidden(hiding);
  for (const Collective& c : collectives_) {
    Comm& comm = comms[c.comm];
    const std::int64_t was_free = std::exchange(comm.free_ns, c.on_device.to_ns);
    if (c.step == SIZE_MAX || !steps_[c.step].counts) continue;
    const auto [from, to] = c.transfer();
    const std::int64_t ns = to - from - hidden(from, to);
    const bool now = backward_.contains(c.thread);
    Exposed& all = facts_.exposed[static_cast<std::size_t>(c.bucket)];
    all.ns += ns;
    if (now && (c.bucket != Bucket::ALLGATHER || c.again)) {
      all.backward_ns += ns;
      all.backward_transfer_ns += to - from;
    }
    // It came to its turn when the call before it was over. All-gathers behind the backward
    // pass come one after the other anyway.
    if (!c.behind && from - was_free < kAtOnceNs) all.queued_ns += ns;
    // A pass counts once it reduces something.
    const bool reduces = c.bucket == Bucket::RESHARDING || c.bucket == Bucket::ALLREDUCE;
    if (!now || c.step != comm.step) comm.reduced = false;
    if (now && reduces && !std::exchange(comm.reduced, true)) ++comm.passes;
    comm.step = c.step;
    facts_.reducing_passes = std::max(facts_.reducing_passes, comm.passes);
  }
}

// The communicator's calls in order, and when it was free for an all-gather: the union of these
// calls. Behind the backward pass there is nothing left to prefetch for.
void RankLines::count_gathers() {
  std::map<std::int64_t, std::vector<const Collective*>> of_comms;
  for (const Collective& c : collectives_) of_comms[c.comm].push_back(&c);
  for (const auto& [comm, calls] : of_comms) {
    // Weights can be gathered early, and who shards them scatters gradients over the same ranks.
    // Statistics of a layer, as of SyncBatchNorm, can't.
    const auto scatters = [](const Collective* c) { return c->bucket == Bucket::RESHARDING; };
    if (std::ranges::none_of(calls, scatters)) continue;
    std::vector<std::int64_t> lengths;
    Spans taken;
    for (const Collective* c : calls) {
      taken.push_back(c->on_device);
      if (c->bucket == Bucket::ALLGATHER && !c->behind) lengths.push_back(c->on_device.ns());
    }
    if (lengths.empty()) continue;
    join(taken);
    const Spans both = common(taken, computes_);
    Cover computing(computes_);
    Cover computing_before(computes_);
    Cover taken_computing(both);
    // One that takes far longer than its like waits for another rank, and could not be hidden.
    std::ranges::nth_element(lengths,
                             lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2));
    const std::int64_t usual = lengths[lengths.size() / 2] * 3 / 2;
    std::int64_t gathered = INT64_MIN;
    std::size_t step = SIZE_MAX;
    for (const Collective* c : calls) {
      if (c->bucket != Bucket::ALLGATHER) continue;
      const auto [from, to] = c->on_device;
      // The first of a step needs the weights that the step before has updated.
      const bool first = std::exchange(step, c->step) != c->step;
      const std::int64_t before = std::exchange(gathered, to);
      if (first || c->behind || c->step == SIZE_MAX || !steps_[c->step].counts) continue;
      const std::int64_t exposed = to - from - computing(from, to);
      // While the device computed and nothing else was on the communicator, it could have run.
      const std::int64_t room =
          before < from ? computing_before(before, from) - taken_computing(before, from) : 0;
      const std::int64_t gain = std::min({exposed, usual, room});
      ++facts_.gathers;
      if (gain * 4 < to - from) continue;
      if (from - c->called_ns < kAtOnceNs) {
        facts_.host_late_gather_ns += gain;
        continue;
      }
      ++facts_.late_gathers;
      facts_.late_gather_ns += gain;
    }
  }
}

}  // namespace tprof::why
