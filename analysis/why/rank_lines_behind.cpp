// All-gathers that a rank makes behind the backward pass of a step of sharded training, where
// nothing is gathered for a layer any more.
#include <algorithm>
#include <map>
#include <numeric>

#include "why/numbers.h"
#include "why/rank_lines.h"

namespace tprof::why {
namespace {

// The device stands still between two calls because the host prepares the next one, alike for each
// of many. A gap that is longer has another reason.
constexpr std::size_t kMany = 4;

}  // namespace

// The calls on one communicator within a step, by counts.
struct RankLines::OfComm {
  std::vector<std::uint64_t> forward{};   // gathered by the thread that calls backward()
  std::vector<std::uint64_t> backward{};  // gathered by autograd's threads
  std::vector<std::uint64_t> scattered{};
  bool scatters_ahead = false;  // of the first backward pass, as sequence parallelism does

  // FSDP gathers each unit ahead of its computation and scatters gradients unit by unit: what is
  // scattered or gathered again was gathered in the forward pass of the same step. ZeRO-1 and -2
  // gather in no forward pass, DeepSpeed's ZeRO-3 scatters other sizes and has to gather small
  // weights behind its update. And if a step were cut within its forward pass, what is behind the
  // cut would look like calls behind the backward pass of the step before, but be missing here.
  bool sharded() {
    for (auto* counts : {&forward, &backward, &scattered}) std::ranges::sort(*counts);
    return !scatters_ahead && !scattered.empty() && std::ranges::includes(forward, scattered) &&
           std::ranges::includes(forward, backward);
  }

  // DeepSpeed's ZeRO-3 does not gather in the same pieces.
  bool gathers_again() const {
    const auto sum = [](const std::vector<std::uint64_t>& counts) {
      return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
    };
    return !scatters_ahead && sum(backward) <= sum(forward);
  }
};

// The calls of a step by communicator, without all-gathers behind its backward pass.
std::map<std::int64_t, RankLines::OfComm> RankLines::comms_of(
    std::span<const Collective> step) const {
  std::map<std::int64_t, OfComm> comms;
  bool ahead = true;
  for (const Collective& c : step) {
    const bool backward = backward_.contains(c.thread);
    if (backward) ahead = false;
    const Shard* shard = shard_of(c);
    if (c.behind || shard == nullptr) continue;
    OfComm& comm = comms[c.comm];
    const bool scatters = c.bucket == Bucket::RESHARDING;
    if (scatters && ahead) comm.scatters_ahead = true;
    auto& counts = scatters ? comm.scattered : (backward ? comm.backward : comm.forward);
    counts.insert(counts.end(), c.calls, shard->count);  // those of a group are alike
  }
  return comms;
}

const RankLines::Shard* RankLines::shard_of(const Collective& c) const {
  const auto key = [](const auto& of) { return std::pair(of.comm, of.seq); };
  const auto found = std::ranges::lower_bound(shards_, key(c), {}, key);
  return found != shards_.end() && key(*found) == key(c) ? &*found : nullptr;
}

// Returns the calls of each step that counts and has any.
std::vector<std::span<const RankLines::Collective>> RankLines::calls_of_steps() const {
  std::vector<std::span<const Collective>> all;
  for (auto from = collectives_.begin(); from != collectives_.end();) {
    const auto to = std::ranges::find_if(from, collectives_.end(),
                                         [&](const Collective& c) { return c.step != from->step; });
    if (from->step != SIZE_MAX && steps_[from->step].counts) all.emplace_back(from, to);
    from = to;
  }
  return all;
}

// The last call of a backward pass is autograd's, or a gradient that the thread which called
// backward() reduces directly behind it. A step without a backward pass has nothing behind one.
void RankLines::mark_behind() {
  std::vector<bool> trains(steps_.size());
  for (const Collective& c : collectives_) {
    if (c.step != SIZE_MAX && backward_.contains(c.thread)) trains[c.step] = true;
  }
  std::size_t step = SIZE_MAX;
  bool behind = false;
  for (auto c = collectives_.rbegin(); c != collectives_.rend(); ++c) {
    if (c->step == SIZE_MAX) continue;
    if (std::exchange(step, c->step) != c->step) behind = trains[c->step];
    if (backward_.contains(c->thread) || c->bucket == Bucket::RESHARDING) behind = false;
    c->behind = behind && c->bucket == Bucket::ALLGATHER;
  }
}

// Returns those of one step that sharded training does without: on a communicator over which
// weights are sharded, or on that of all ranks if it has no part in training.
std::vector<const RankLines::Collective*> RankLines::not_needed(
    std::span<const Collective> step) const {
  std::map<std::int64_t, OfComm> comms = comms_of(step);
  std::set<std::int64_t> sharded;
  for (auto& [number, comm] : comms) {
    if (comm.sharded()) sharded.insert(number);
  }
  std::vector<const Collective*> found;
  bool as_ahead = true;  // all of them gather units of the forward pass
  for (const Collective& c : step) {
    const read::Comm* comm = comm_of(rank_, c.comm);
    const bool of_all = comm != nullptr && comm->nranks == rank_.header.world_size &&
                        !sharded.empty() && !comms.contains(c.comm);
    if (!c.behind || (!of_all && !sharded.contains(c.comm))) continue;
    found.push_back(&c);
    const Shard* shard = shard_of(c);
    as_ahead = as_ahead && shard != nullptr && !of_all &&
               std::ranges::binary_search(comms[c.comm].forward, shard->count);
  }
  if (!as_ahead || found.empty()) return found;
  // Another forward pass, as of an evaluation in each step, needs what it gathers.
  const std::int64_t from = found.front()->on_device.from_ns;
  const std::int64_t to = found.back()->on_device.to_ns;
  if (2 * Cover(computes_)(from, to) > to - from) found.clear();
  return found;
}

// Sequence parallelism gathers activations on autograd's threads, which no sharding could keep.
void RankLines::mark_again() {
  std::ranges::sort(shards_, {}, [](const Shard& s) { return std::pair(s.comm, s.seq); });
  if (backward_.empty()) return;
  for (auto from = collectives_.begin(); from != collectives_.end();) {
    const auto to = std::ranges::find_if(from, collectives_.end(),
                                         [&](const Collective& c) { return c.step != from->step; });
    const std::map<std::int64_t, OfComm> comms = comms_of({from, to});
    for (Collective& c : std::span(from, to)) {
      const auto comm = comms.find(c.comm);
      c.again = c.bucket == Bucket::ALLGATHER && !c.behind && backward_.contains(c.thread) &&
                comm != comms.end() && comm->second.gathers_again();
    }
    from = to;
  }
}

void RankLines::count_behind(const Spans& hiding, const Spans& works) {
  if (std::ranges::none_of(collectives_, &Collective::behind)) return;
  Cover hidden(hiding);
  Cover working(works);
  std::vector<Behind> of_steps;
  std::vector<double> calls;
  for (const std::span<const Collective> step : calls_of_steps()) {
    Behind& all = of_steps.emplace_back();
    std::vector<double> gaps;
    std::int64_t done = INT64_MAX;
    for (const Collective* c : not_needed(step)) {
      const auto [begins, ends] = c->on_device;
      const Shard* shard = shard_of(*c);
      all.calls += c->calls;
      all.bytes += shard == nullptr ? 0 : c->calls * shard->bytes;
      // If nobody knows when the last rank came, that may be waiting.
      if (c->met) all.ns += ends - c->all_there_ns - hidden(c->all_there_ns, ends);
      if (done < begins) {
        // Where it stands still for most of a gap, a kernel in it makes it no longer.
        const std::int64_t gap = begins - done;
        const std::int64_t idle = gap - working(done, begins);
        gaps.push_back(static_cast<double>(2 * idle > gap ? gap : idle));
      }
      done = ends;
    }
    if (gaps.size() + 1 >= kMany) {
      const double usual = 2 * median(gaps);
      for (const double gap : gaps) all.idle_ns += std::llround(std::min(gap, usual));
    }
    calls.push_back(static_cast<double>(all.calls));
  }
  // Evaluations and checkpoints of a few steps are not what each step does.
  const double usual = median(calls);
  for (const Behind& b : of_steps) {
    if (b.calls == 0 || static_cast<double>(b.calls) > 2 * usual) continue;
    ++facts_.behind.steps;
    facts_.behind.calls += b.calls;
    facts_.behind.bytes += b.bytes;
    facts_.behind.ns += b.ns;
    facts_.behind.idle_ns += b.idle_ns;
  }
}

}  // namespace tprof::why
