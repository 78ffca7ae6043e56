// Holds runs against the budgets of others, and steps that may be micro-batches against a model.
#include <fmt/format.h>

#include "analysis_budget_toy.h"
#include "budget/budget.h"
#include "catch2.h"
#include "read/error.h"

using namespace tprof;
using namespace tprof::test;

namespace {

// Returns what `against` says of 40 found steps: `first` and `second` by turns, which reduce the
// gradients and then gather so many parameters. Empty: nothing to ask.
std::string asked_of(double first, double second) {
  const auto measure = [&](std::uint64_t n) {
    const auto figures = [](double reduced, double gathered) {
      Figures all = {{key(Bucket::ALLREDUCE), {reduced, reduced * 6848 * 4, reduced * 6848}}};
      if (gathered != 0) all[key(Bucket::ALLGATHER)] = {1, gathered * 4, gathered};
      return all;
    };
    Measured m{.from = Measured::From::lines, .found = 40};
    const bool alike = first == second;
    m.may_be_micro_batches = n == 1;
    m.may_be_steps = n > 1;
    m.left_out = n == 1 && !alike ? 19 : 0;
    m.steps = 40 / n - m.left_out;
    const double k = static_cast<double>(n);
    m.groups = {{{0, 1}, figures(k, n == 1 ? first : k / 2 * (first + second))}};
    return m;
  };
  try {
    Model model = toy(Way::zero2);
    model.accumulate = Accumulate::every;
    against(model, measure);
  } catch (const read::BadInput& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("what is within the budget by twos is asked for, and not blamed", "[budget]") {
  const std::string asked = asked_of(0, 6848);
  CAPTURE(asked);
  CHECK(has(asked, "whether the 40 that were found are steps or micro-batches"));
  CHECK(has(asked, "if 2 make a step, all is"));
  CHECK(has(asked, "--micro-batches 2"));
  CHECK(has(asked, "--steps 40"));
  CHECK(asked_of(0, 6000).empty());     // nor by twos
  CHECK(asked_of(6848, 6848).empty());  // each is within
}

TEST_CASE("gathers for the backward pass that are gone are told without a model", "[budget]") {
  const auto measured = [](double calls, double elements) {
    Figures figures = fsdp_figures();
    figures[key(Bucket::ALLGATHER)] = {calls, elements * 4, elements};
    return Measured{.from = Measured::From::lines, .steps = 4, .groups = {{{0}, figures}}};
  };
  const auto said = [](const Measured& good, const Measured& now) {
    return compare(now, of_run(good, 0)).sentences;
  };
  const Measured off = measured(3, 6848);
  CHECK(said(measured(5, 13280), off) ==
        std::vector<std::string>{
            "each unit but one (the root) is gathered half as often as in the budget, and kept for "
            "the backward pass: reshard_after_forward is off"});
  CHECK(said(measured(6, 13696), off) ==
        std::vector<std::string>{
            "each unit is gathered half as often as in the budget: reshard_after_forward?"});
  CHECK(has(said(measured(5, 13280), measured(3, 6000)).at(0), "no known mistake explains it"));
  CHECK(has(said(off, measured(5, 13280)).at(0), "reshard_after_forward is on"));
}

TEST_CASE("other bytes of as many gathers are no resharding", "[budget]") {
  constexpr double kMiB = 1 << 20;
  const auto measured = [](double bytes) {  // ZeRO-1 gathers once
    const Figures figures = {{key(Bucket::ALLGATHER), {1, bytes, bytes / 4}}};
    return Measured{.from = Measured::From::lines, .steps = 4, .groups = {{{0}, figures}}};
  };
  const Budget budget = of_run(measured(10 * kMiB), 0);
  for (const double now : {5 * kMiB, 15 * kMiB}) {
    const Compared c = compare(measured(now), budget);
    CHECK(c.sentences == std::vector<std::string>{
                             fmt::format("ALLGATHER: 5.00 MiB a step {} than expected, and no "
                                         "known mistake explains it",
                                         now < 10 * kMiB ? "less" : "more")});
  }
}
