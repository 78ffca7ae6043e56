// diff/: which counts of two runs are compared, and what is said and judged of them.
#include <string>
#include <vector>

#include "catch2.h"
#include "diff/compare.h"
#include "report/diff.h"

using namespace tprof;
using namespace tprof::diff;

TEST_CASE("a change from nothing has no share, and is said in numbers") {
  const auto said = [](const Count& a, const Count& b) {
    CountChange change;
    change.a = a;
    change.b = b;
    return report::change_of(change);
  };
  CHECK(said({.calls = 0}, {.calls = 2, .bytes = 64}) == "from 0 to 2 calls");
  CHECK(said({.calls = 0}, {.calls = 1, .bytes = 64}) == "from 0 to 1 call");
  CHECK(said({.calls = 0}, {.calls = 0.5L}) == "from 0 to 0.5 calls");
  CHECK(said({.calls = 2}, {.calls = 2, .bytes = 2048}) == "from 0 to 2,048 bytes");
  CHECK(said({.calls = 2}, {.calls = 3}) == "+1 call, +50.0%");
  CHECK(said({.calls = 2}, {.calls = 0}) == "-2 calls, -100.0%");
}

TEST_CASE("a rate has the unit in which its digits show") {
  CHECK(report::rate_of(312.5) == "312.50 GB/s");
  CHECK(report::rate_of(0.32) == "0.32 GB/s");
  CHECK(report::rate_of(0.0843) == "84.3 MB/s");
  CHECK(report::rate_of(0.00158) == "1.58 MB/s");
  CHECK(report::rate_of(0.000163) == "0.163 MB/s");
  CHECK(report::rate_of(0.0000042) == "4.20 kB/s");
  CHECK(report::rate_of(0) == "0.00 GB/s");
}

TEST_CASE(
    "a step of five micro-batches is told on three ranks, whose shares are no round numbers") {
  // In each micro-batch one call of each rank, and another that one of them makes; in each step a
  // loss that is read once.
  const auto run = [](std::uint64_t steps, std::uint64_t micro_batches) {
    Run of{.ranks = 3, .steps_seen = steps, .whole_steps = micro_batches != 1};
    Step step;
    step.ranks = step.calling = 3;
    for (const auto& [bucket, calls] : {std::pair(Bucket::ALLGATHER, 3 * micro_batches),
                                        {Bucket::H2D, micro_batches},
                                        {Bucket::D2H, 3}}) {
      step.kinds[{.bucket = bucket}].calls = calls;
      of.totals[{.bucket = bucket}].calls = steps * calls;
    }
    of.steps = {step};
    return of;
  };
  Diff d;
  compare_counts(run(6, 5), run(30, 1), d);
  REQUIRE(d.unlike);
  CHECK(d.unlike->in_a);
  CHECK(d.unlike->times == 5);
  CHECK(d.unlike->longer == 1);
}

TEST_CASE("of runs of which one did not end, calls that the other never makes are counted") {
  const OpKind gathers{.bucket = Bucket::ALLGATHER, .function = "ncclAllGather"};
  Run a{.ranks = 2};
  a.totals[gathers].calls = 10;
  Run b{.ranks = 2, .ended = false};
  b.totals[gathers].calls = 20;
  b.totals[{.bucket = Bucket::ALLTOALL, .function = "ncclAlltoAll"}].calls = 2;
  Diff d;
  compare_counts(a, b, d);
  REQUIRE(d.counts.size() == 1);
  CHECK(judge(rules_of("calls"), d).failed == std::vector<std::string>{"calls"});
  CHECK(report::verdict(d).find("Counts of other calls are not compared: B did not end") !=
        std::string::npos);
}

TEST_CASE("a missing call is not a shorter run") {
  const auto run = [](std::uint64_t small, std::uint64_t large) {
    Run of{.ranks = 2};
    const auto calls = [&](std::int64_t bytes_class) -> std::uint64_t& {
      const OpKind kind{
          .bucket = Bucket::ALLGATHER, .function = "ncclAllGather", .bytes_class = bytes_class};
      return of.totals[kind].calls;
    };
    if (small != 0) calls(10) = small;
    calls(20) = large;
    return of;
  };
  for (const std::uint64_t small : {0, 40}) {  // alone, and beside calls that are the same
    Diff d;
    compare_counts(run(small, 90), run(small, 88), d);
    CHECK(d.longer == 1);
    REQUIRE(d.counts.size() == 1);
    CHECK(d.counts[0].kind.bytes_class == 20);
    CHECK(d.counts[0].a.calls == 45);
    CHECK(d.counts[0].b.calls == 44);
  }
}

TEST_CASE("calls of the setup are the same in runs of any length") {
  const auto run = [](std::uint64_t steps) {
    Run of{.ranks = 2};
    of.totals[{.bucket = Bucket::ALLGATHER, .function = "ncclAllGather"}].calls = 9 * steps;
    of.totals[{.bucket = Bucket::RESHARDING, .function = "ncclReduceScatter"}].calls = 5 * steps;
    of.totals[{.bucket = Bucket::ALLREDUCE, .function = "ncclAllReduce"}].calls = 2 * steps;
    of.totals[{.bucket = Bucket::BROADCAST, .function = "ncclBroadcast"}].calls = 6;
    return of;
  };
  const Run a = run(20);
  Run b = run(16);
  Diff d;
  compare_counts(a, b, d);
  CHECK(d.longer == Approx(0.8));
  CHECK(d.counts.empty());
  b.totals[{.bucket = Bucket::BROADCAST, .function = "ncclBroadcast"}].calls = 7;
  d = {};
  compare_counts(a, b, d);
  CHECK(d.counts.size() == 1);
}

TEST_CASE("calls of some ranks are counted in all, and collectives that are new are told first") {
  const OpKind gathers{.bucket = Bucket::ALLGATHER, .function = "ncclAllGather"};
  const OpKind copies{.bucket = Bucket::D2D, .function = "cudaMemcpyAsync"};
  const read::Process one;
  const read::Process other;
  Run a{.ranks = 2};
  a.totals[copies] = {.calls = 164, .bytes = 164 << 20};
  a.callers[copies] = {&one, &other};
  Run b = a;
  b.totals[copies] = {.calls = 174, .bytes = 174 << 20};
  b.totals[gathers] = {.calls = 1, .bytes = 32 << 10};
  b.callers[gathers] = {&one};
  Diff d;
  compare_counts(a, b, d);
  REQUIRE(d.counts.size() == 2);
  CHECK(d.counts[0].kind == gathers);
  CHECK(report::cell(d.counts[0].b) == "1 call in all, 32.00 KiB, on 1 of 2 ranks");
  CHECK(report::cell(d.counts[1].b) == "87 calls, 87.00 MiB");
}

TEST_CASE("calls of which no step has a usual count are compared in all") {
  const OpKind gathers{.bucket = Bucket::ALLGATHER, .function = "ncclAllGather"};
  // One rank; how many calls its steps have, again and again.
  const auto run = [&](std::vector<std::uint64_t> calls) {
    Run of{.ranks = 1, .steps_seen = 40};
    for (std::size_t i = 0; i < 40; ++i) {
      Step step;
      step.number = static_cast<std::int64_t>(i) + 1;
      step.ranks = step.calling = 1;
      step.kinds[gathers].calls = calls[i % calls.size()];
      of.totals[gathers].calls += calls[i % calls.size()];
      of.steps.push_back(std::move(step));
    }
    return of;
  };
  const Run even = run({2});
  for (const auto& [uneven, more] :
       {std::pair(run({1, 2, 3, 2}), 0), std::pair(run({1, 2, 3, 4}), 20)}) {
    Diff d;
    compare_counts(even, uneven, d);
    CHECK(d.counts.size() == (more == 0 ? 0 : 1));
    if (d.counts.empty()) continue;
    CHECK_FALSE(d.counts[0].per_step);
    CHECK(d.counts[0].b.calls - d.counts[0].a.calls == more);
  }
  // A usual count of none is one.
  Diff d;
  compare_counts(even, run({0, 0, 0, 2}), d);
  REQUIRE(d.counts.size() == 1);
  CHECK(d.counts[0].per_step);
}

TEST_CASE("a shorter usual step is not told alone where steps that stand out make up for it") {
  constexpr double kMs = 1e6;
  Diff d;
  d.times.push_back(
      {.a = 80 * kMs, .b = 60 * kMs, .low = -25 * kMs, .high = -15 * kMs, .noise = 5 * kMs});
  d.lengths_a = {.steps = 40, .mean_ns = 90 * kMs, .median_ns = 75 * kMs, .longest_ns = 340 * kMs};
  d.lengths_b = {.steps = 40, .mean_ns = 130 * kMs, .median_ns = 65 * kMs, .longest_ns = 340 * kMs};
  CHECK(
      report::verdict(d).starts_with("B's usual step takes 60.00 ms, 25.0% shorter than A's "
                                     "(18.8 to 31.2%). All steps take 90.00 ms "
                                     "and 130.00 ms on average"));
  d.lengths_b.mean_ns = 70 * kMs;
  CHECK(report::verdict(d).starts_with("B's step takes 60.00 ms, 25.0% shorter"));
}
