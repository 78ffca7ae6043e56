// Habits of the program, alike on all ranks, and what a step would be shorter by without it: these
// are choices, and may be wanted.
#include <fmt/ranges.h>

#include <algorithm>

#include "why/causes.h"
#include "why/habit.h"

namespace tprof::why {

using diagnose::Bytes;
using diagnose::Findings;
using diagnose::Kind;
using diagnose::Percent;

namespace {

// The operation with which gradients are reduced: all-reduce where nothing is reduce-scattered, and
// where hardly anything is all-reduced outside of the backward pass, as tensor parallelism does.
std::optional<Bucket> reduces_by(const read::Process& rank) {
  std::uint64_t scattered = 0;
  std::uint64_t reduced = 0;
  std::uint64_t backward = 0;
  for (const read::Row& row : read::rows_of(rank)) {
    if (row.bucket == Bucket::RESHARDING) scattered += row.amounts.bytes;
    if (row.bucket != Bucket::ALLREDUCE) continue;
    reduced += row.amounts.bytes;
    if (row.thread == ThreadKind::autograd) backward += row.amounts.bytes;
  }
  if (scattered != 0) return Bucket::RESHARDING;
  return backward != 0 && backward >= reduced / 20 * 19 ? std::optional(Bucket::ALLREDUCE)
                                                        : std::nullopt;
}

}  // namespace

// All-gathers that begin only when the computation before them has ended.
void late_prefetch(const Evidence& e, Findings& found) {
  const double gathers = of_a_step(e, [](const RankFacts& f) { return f.gathers; });
  const double late = of_a_step(e, [](const RankFacts& f) { return f.late_gathers; });
  const double gain = of_a_step(e, [](const RankFacts& f) { return f.late_gather_ns; });
  if (gathers < 2 || late * 2 < gathers) return;
  tell(e, Kind::late_prefetch, within_hosts_spare(e, gain),
       {{"late", Percent{100 * late / gathers}}}, found);
}

// Copies that make the program wait for the device in the middle of a step, again and again. A host
// that waits so does not run ahead of its device any more, and calls all-gathers too late.
void blocking_copies(const Evidence& e, Findings& found) {
  const auto look = [&](Kind kind, Blocking RankFacts::*which) {
    const auto in_usual_steps = [&](std::uint64_t Blocking::*part) {
      return of_a_step(e, [&](const RankFacts& f) {
        const Blocking& its = f.*which;
        const std::uint64_t steps = std::max(its.steps, std::uint64_t{1});
        return static_cast<double>(its.*part * f.steps) / static_cast<double>(steps);
      });
    };
    const double calls = in_usual_steps(&Blocking::calls);
    if (calls < 1.5) return;
    const double bytes = in_usual_steps(&Blocking::bytes);
    // All-gathers come late because of either, as far as these make the device stand still.
    const double ns = of_a_step(e, [&](const RankFacts& f) {
      const auto idle = static_cast<double>((f.*which).idle_ns);
      const auto both = static_cast<double>(f.to_device.idle_ns + f.to_host.idle_ns);
      return both == 0 ? 0.0 : idle + static_cast<double>(f.host_late_gather_ns) * idle / both;
    });
    tell(e, kind, within_hosts_spare(e, ns),
         {{"calls", std::uint64_t(std::llround(calls))},
          {"bytes", Bytes{static_cast<std::uint64_t>(std::llround(bytes / calls))}}},
         found);
  };
  look(Kind::blocking_h2d, &RankFacts::to_device);
  look(Kind::blocking_d2h, &RankFacts::to_host);
}

namespace {

// Returns how much of a step is exposed because of a part of the backward pass' calls of a bucket:
// their own exposed time, and what of the others' is because they stand in the same queue.
double because_of(const Evidence& e, Bucket bucket, double part) {
  return of_a_step(e, [&](const RankFacts& f) {
    const Exposed& its = f.exposed[static_cast<std::size_t>(bucket)];
    double queued = 0;
    for (const Exposed& other : f.exposed) queued += static_cast<double>(other.queued_ns);
    queued -= static_cast<double>(its.queued_ns);
    const auto exposed = static_cast<double>(its.backward_ns);
    const double hidden = static_cast<double>(its.backward_transfer_ns) - exposed;
    return part * exposed + std::min(part * hidden, std::max(queued, 0.0));
  });
}

}  // namespace

// Weights that are gathered again in the backward pass, and gradients that are reduced in each
// micro-batch: less memory and more communication, as far as that is not hidden.
void done_again(const Evidence& e, Findings& found) {
  tell_exposed(e, Kind::gathered_again, because_of(e, Bucket::ALLGATHER, 1), {}, found);
  const double passes = of_a_step(e, [](const RankFacts& f) { return f.reducing_passes; });
  const std::optional<Bucket> by = reduces_by(*e.times.ranks.front());
  if (passes < 1.5 || !by) return;
  tell_exposed(e, Kind::reduced_again, because_of(e, *by, (passes - 1) / passes),
               {{"passes", std::uint64_t(std::llround(passes))}}, found);
}

constexpr double kSmall = 1 << 20;  // bytes
constexpr double kNearlyAll = 0.9;

// Tensors that are sent as float32: as bfloat16 they were half.
void wide_dtype(const Evidence& e, Findings& found) {
  const std::array<Sent, kBucketCount>& sent = e.times.facts.front().sent;
  double saved = 0;
  double sharded = 0;
  std::array<double, kBucketCount> of_buckets{};
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    const auto bucket = static_cast<Bucket>(b);
    const auto all = static_cast<double>(sent[b].bytes);
    // The time of a small message is latency, which stays.
    const bool large = all >= kSmall * static_cast<double>(sent[b].calls);
    const double wide = all == 0 ? 0 : static_cast<double>(sent[b].wide_bytes) / all;
    // How long a message waits for its receiver is not known.
    if (is_copy(bucket) || bucket == Bucket::P2P || !large || wide < kNearlyAll) continue;
    of_buckets[b] = of_a_step(e, [&](const RankFacts& f) { return f.exposed[b].ns; }) * wide / 2;
    saved += of_buckets[b];
    if (bucket == Bucket::ALLGATHER || bucket == Bucket::RESHARDING) sharded += of_buckets[b];
  }
  std::vector<std::string_view> which;
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    if (of_buckets[b] * 10 > saved) which.push_back(bucket_name(static_cast<Bucket>(b)));
  }
  // Sharded training scatters gradients; who only gathers does so by hand.
  const bool shards = sent[static_cast<std::size_t>(Bucket::RESHARDING)].calls != 0;
  tell_exposed(e, Kind::wide_dtype, saved,
               {{"which", fmt::format("{}", fmt::join(which, " and "))},
                {"one", which.size() == 1},
                {"sharded", shards && sharded * 2 > saved}},
               found);
}

}  // namespace tprof::why
