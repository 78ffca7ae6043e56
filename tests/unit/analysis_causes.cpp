// Causes of jobs whose steps are known to the millisecond.
#include <iterator>
#include <random>

#include "analysis_why_toy.h"
#include "catch2.h"
#include "diagnose/who.h"

using namespace tprof;
using namespace tprof::test;
using diagnose::Findings;
using diagnose::Kind;

namespace {

Findings found_by(why::Cause cause, const WhyToy& job) {
  Findings found;
  cause(job.evidence(), found);
  return found;
}

// Whether a value is said of it.
bool says(const diagnose::Finding& f, std::string_view name,
          const decltype(diagnose::Value::is)& is) {
  return std::ranges::any_of(f.text.values, [&](const diagnose::Named& value) {
    return value.name == name && value.value.is == is;
  });
}

// Steps of 8 windows of 8 steps each; the first of each window is longer, as every hundredth is.
WhyToy& with_windows(WhyToy& job) {
  for (std::size_t i = 0; i < job.steps.size(); ++i) {
    job.times.steps[i] = static_cast<std::int64_t>(100 * (i / 8) + 100 + i % 8);
  }
  return job;
}

}  // namespace

TEST_CASE("every n-th step is long only where no step between is unknown") {
  WhyToy job(2, 64);
  for (std::size_t i = 7; i < 64; i += 8) job.lengthen(i, 50 * kMs);
  const Findings whole = found_by(why::step_series, job);
  REQUIRE(whole.size() == 1);
  CHECK(whole[0].kind == Kind::periodic_steps);
  const Findings gaps = found_by(why::step_series, with_windows(job));
  REQUIRE(gaps.size() == 1);
  CHECK(gaps[0].kind == Kind::long_steps);
}

TEST_CASE("a rank is slow in every n-th step only where no step between is unknown") {
  WhyToy job(16, 64);
  for (std::size_t i = 7; i < 64; i += 8) job.slow(5, i);
  for (const bool gaps : {false, true}) {
    if (gaps) with_windows(job);
    const Findings found = found_by(why::slow_ranks, job);
    REQUIRE(found.size() == 1);
    CHECK(found[0].ranks.str() == "5");
    CHECK(says(found[0], "period", "8th") == !gaps);
  }
}

TEST_CASE("every n-th step in which a rank is slow is told though it is in others by less") {
  // Measured with a host that slept before every 4th step, and was busy behind each of them.
  const std::vector<std::pair<std::size_t, double>> of_steps = {
      {4, 110.8}, {8, 94.1},   {11, 50.8}, {12, 110.5}, {15, 30.7}, {16, 73.7},
      {19, 31.1}, {20, 90.0},  {23, 31.3}, {24, 60.7},  {27, 30.9}, {28, 43.9},
      {31, 49.9}, {32, 112.9}, {35, 35.4}, {36, 89.6},  {39, 31.1}, {40, 103.7}};
  WhyToy job(2, 40);
  for (const auto& [step, more] : of_steps) job.slow(0, step - 1, more * kMs);
  const Findings found = found_by(why::slow_ranks, job);
  REQUIRE(found.size() == 1);
  CHECK(says(found[0], "in_steps", std::uint64_t{10}));
  CHECK(says(found[0], "period", "4th"));
  // A rhythm is not told where they are no longer than the others.
  WhyToy even(2, 40);
  for (const auto& [step, more] : of_steps) even.slow(0, step - 1, 60 * kMs);
  for (const diagnose::Finding& f : found_by(why::slow_ranks, even)) {
    CHECK(says(f, "in_steps", std::uint64_t{18}));
    CHECK(says(f, "period", std::monostate()));
  }
}

TEST_CASE("a rank that is slow by another time in each step is told") {
  constexpr double kMore[] = {57, 0,  0,  1,  51, 15, 18, 19, 16, 54, 10, 26, 28, 41, 53,
                              14, 17, 19, 20, 68, 0,  0,  0,  2,  56, 18, 35, 23, 20};
  const std::size_t steps = std::size(kMore);
  WhyToy job(2, steps);
  double sum = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    job.slow(1, i, kMore[i] * kMs);
    sum += kMore[i];
  }
  const Findings found = found_by(why::slow_ranks, job);
  REQUIRE(found.size() == 1);
  CHECK(found[0].ranks.str() == "1");
  CHECK(found[0].cost->ns_per_step == std::llround(sum / steps * kMs));
  CHECK(says(found[0], "in_steps", std::monostate()));
  // In as few steps that it is hardly always, it is told of those.
  WhyToy few(2, 14);
  for (std::size_t i = 3; i < 14; ++i) few.slow(0, i, kMore[i + 5] * kMs);
  const Findings at_times = found_by(why::slow_ranks, few);
  REQUIRE(at_times.size() == 1);
  CHECK(at_times[0].ranks.str() == "0");
}

TEST_CASE("ranks that are slow by turns are not told to be slow always") {
  std::mt19937 random(1);  // NOLINT: always the same
  int always = 0;
  for (int n = 0; n < 300; ++n) {
    const std::size_t ranks = 2 + n % 2;
    WhyToy job(ranks, 20 + random() % 40);
    for (std::size_t i = 0; i < job.steps.size(); ++i) {
      job.slow(random() % ranks, i, static_cast<double>(1 << (random() % 7)) * kMs);
    }
    for (const diagnose::Finding& f : found_by(why::slow_ranks, job)) {
      always += says(f, "in_steps", std::monostate()) ? 1 : 0;
    }
  }
  CAPTURE(always);
  CHECK(always <= 3);  // of a hundred jobs one may be, by chance
}

TEST_CASE("a cost in the run is that of all its steps, also where but every third is kept") {
  WhyToy job(4, 40);
  job.times.steps_of_run = 120;
  for (std::size_t i = 0; i < 40; ++i) {
    job.times.steps[i] = static_cast<std::int64_t>(3 * i + 1);
    job.slow(2, i);
  }
  const Findings found = found_by(why::slow_ranks, job);
  REQUIRE(found.size() == 1);
  CHECK(found[0].cost->ns_per_step == std::llround(20 * kMs));
  CHECK(found[0].cost->ns == std::llround(120 * 20 * kMs));
}

TEST_CASE("a slow link costs what its calls of a step do, also where but every third is kept") {
  WhyToy job(4, 40);
  job.times.steps_of_run = 120;
  for (why::RankFacts& f : job.times.facts) {
    f.steps = 40;
    f.exposed[static_cast<std::size_t>(Bucket::ALLREDUCE)].ns = std::llround(40 * 30 * kMs);
  }
  // Two calls a step on each of four communicators, one of which takes 5 ms longer for each.
  for (std::int64_t r = 0; r < 4; ++r) {
    job.transfers.all.push_back({.comm = std::to_string(r),
                                 .bucket = Bucket::ALLREDUCE,
                                 .size_class = 20,
                                 .ranks = text::Ranks({r}),
                                 .hosts = {"a"},
                                 .collectives = 100,
                                 .calls = 240,
                                 .bytes = 240 << 20,
                                 .usual_ns = std::llround((r == 3 ? 15 : 10) * kMs),
                                 .quick_ns = std::llround((r == 3 ? 14 : 9) * kMs)});
  }
  const Findings found = found_by(why::slow_links, job);
  REQUIRE(found.size() == 1);
  CHECK(found[0].cost->ns_per_step == std::llround(10 * kMs));
  // Some of its transfers are as quick as the others' usually are: it is not the link.
  job.transfers.all.back().quick_ns = std::llround(9.5 * kMs);
  CHECK(found_by(why::slow_links, job).empty());
}

TEST_CASE("a rank that sent a few messages in a long run is no stage of a pipeline") {
  WhyToy job(1, 4);
  job.times.steps_of_run = 400;
  job.times.facts[0].messages = 3;
  CHECK(!why::sends(job.evidence(), 0));
  job.times.facts[0].messages = 400;
  CHECK(why::sends(job.evidence(), 0));
  job.steps = {1};  // of the four that are kept one counts
  job.times.facts[0].messages = 100;
  CHECK(why::sends(job.evidence(), 0));
}

TEST_CASE("of 64 ranks 32 are slow, and each has its part of the time") {
  WhyToy job(64, 20);
  for (std::size_t i = 0; i < 20; ++i) {
    for (std::size_t r = 0; r < 64; r += 2) job.slow(r, i);
  }
  // One of them also begins 4 ms late, less than a quarter: that is because it is slow.
  for (std::size_t i = 0; i < 20; ++i) {
    for (std::size_t r = 0; r < 64; ++r) {
      why::Cell& c = job.cell(r, i);
      c.length += 4 * kMs;
      c.spare += 4 * kMs;
      (r == 6 ? c.lead : c.exposed) += 4 * kMs;
      if (r != 6) c.missing += 4 * kMs;
    }
  }
  const Findings found = found_by(why::slow_ranks, job);
  REQUIRE(found.size() == 1);
  CHECK(found[0].kind == Kind::slow_gpu);
  CHECK(found[0].ranks.size() == 32);
  CHECK(found[0].cost->ns_per_step == std::llround(20 * kMs));
}
