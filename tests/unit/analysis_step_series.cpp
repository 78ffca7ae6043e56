// Steps that take longer from one of them on.
#include "analysis_why_toy.h"
#include "catch2.h"

using namespace tprof;
using namespace tprof::test;

namespace {

bool jumps(const std::vector<double>& longer_ms) {
  WhyToy job(2, longer_ms.size());
  for (std::size_t i = 0; i < longer_ms.size(); ++i) job.lengthen(i, longer_ms[i] * kMs);
  diagnose::Findings found;
  why::step_series(job.evidence(), found);
  return std::ranges::any_of(found, [](const diagnose::Finding& f) {
    return f.kind == diagnose::Kind::jumping_steps && f.steps->first == 10;
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
