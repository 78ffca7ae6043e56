// Steps that take longer from one of them on.
#include <numeric>

#include "catch2.h"
#include "why/causes.h"

using namespace tprof;

namespace {

bool jumps(const std::vector<double>& longer_ms) {
  constexpr float kMs = 1e6;
  const std::size_t n = longer_ms.size();
  const read::Process rank;
  const job::Job job;
  why::Times times{.ranks = {&rank}, .steps_of_run = n, .facts = {{}}};
  std::vector<std::size_t> steps(n);
  std::iota(steps.begin(), steps.end(), std::size_t{0});
  for (std::size_t i = 0; i < n; ++i) {
    times.steps.push_back(static_cast<std::int64_t>(i) + 2);
    times.cells.push_back({.length = (100 + static_cast<float>(longer_ms[i])) * kMs});
    times.least_exposed.push_back(0);
  }
  const why::WaitTable waits;
  const std::map<std::string, std::string, std::less<>> roles;
  check::Findings found;
  why::step_series({job, times, steps, waits, roles, nullptr, nullptr, 100 * kMs}, found);
  return std::ranges::any_of(found, [](const check::Finding& f) {
    return f.kind == check::Kind::jumping_steps && f.steps->first == 10;
  });
}

}  // namespace

// Pettitt: U is how many pairs of a step before and one behind are in order, less those that are
// not, and the chance 2 exp(-6 U^2 / (n^3 + n^2)). A jump is told below 1 %: of 16 steps, with the
// jump in the middle, from U = 62 (0.99 %) of 64 on; 61 are 1.18 %.
TEST_CASE("a jump is told as far as chance would not have it") {
  CHECK(jumps({0, 0, 0, 0, 0, 0, 0, 0, 10, 10, 12, 12, 12, 12, 12, 12}));
  // As long as two behind: 62.
  CHECK(jumps({0, 0, 0, 10, 0, 0, 0, 0, 10, 10, 12, 12, 12, 12, 12, 12}));
  // Longer than one of them, and as long as the other: 61.
  CHECK(!jumps({0, 0, 0, 11, 0, 0, 0, 0, 10, 11, 12, 12, 12, 12, 12, 12}));
  // Longer than both: 60.
  CHECK(!jumps({0, 0, 0, 11, 0, 0, 0, 0, 10, 10, 12, 12, 12, 12, 12, 12}));
}
