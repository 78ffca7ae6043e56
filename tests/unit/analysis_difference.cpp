// diff/difference: how sure a difference between the steps of two runs is, on series made by hand.
#include <cmath>
#include <random>
#include <vector>

#include "catch2.h"
#include "diff/difference.h"

using namespace tprof::diff;
using Numbers = std::vector<double>;

namespace {

constexpr std::uint64_t kSeed = 4;  // of all series that are drawn

Numbers normal(std::mt19937_64& random, std::size_t n, double mean, double deviation,
               double alike = 0) {
  std::normal_distribution<double> draw;
  Numbers all;
  double before = draw(random);
  for (std::size_t i = 0; i < n; ++i) {
    before = alike * before + std::sqrt(1 - alike * alike) * draw(random);
    all.push_back(mean + deviation * before);
  }
  return all;
}

// How many of 400 pairs of runs, B 2 slower, have that in their interval.
int covered(std::size_t n, double alike, std::size_t checkpoint_every) {
  std::mt19937_64 random(kSeed);
  int in = 0;
  for (int pair = 0; pair < 400; ++pair) {
    Numbers a = normal(random, n, 100, 1, alike);
    Numbers b = normal(random, n, 102, 1, alike);
    for (std::size_t i = 2; checkpoint_every != 0 && i < n; i += checkpoint_every) {
      a[i] += 40;
      b[i] += 40;
    }
    const auto [low, high] = difference(a, b)->interval();
    in += low <= 2 && 2 <= high ? 1 : 0;
  }
  return in;
}

}  // namespace

TEST_CASE("Student's t is that of printed tables") {
  CHECK(student_t(0.05, 1) == Approx(12.706).epsilon(1e-4));
  CHECK(student_t(0.05, 4) == Approx(2.776).epsilon(1e-3));
  CHECK(student_t(0.01, 8) == Approx(3.355).epsilon(1e-3));
  CHECK(student_t(0.001, 20) == Approx(3.850).epsilon(1e-3));
  CHECK(student_t(0.05, 100) == Approx(1.984).epsilon(1e-3));
  CHECK(student_t(0.05, 1e9) == Approx(1.960).epsilon(0.01));
}

TEST_CASE("the interval of a series that can be worked out by hand") {
  // Deviations of 1, -1, 0 in each: a variance of 1 each and together, no correlation that adds:
  // products -1 - 1 + 0 of squares of 4, and 2 / 6 for so few steps: below 0.
  const auto d = difference({101, 99, 100}, {111, 109, 110});
  REQUIRE(d);
  CHECK(d->a == Approx(100));
  CHECK(d->b == Approx(110));
  CHECK(d->error == Approx(std::sqrt(2.0 / 3)));
  CHECK(d->freedom == Approx(4));
  const auto [low, high] = d->interval();
  CHECK(low == Approx(10 - 2.776 * std::sqrt(2.0 / 3)).epsilon(1e-3));
  CHECK(high == Approx(10 + 2.776 * std::sqrt(2.0 / 3)).epsilon(1e-3));
}

TEST_CASE("a run that varies less than both together is not believed to vary so little") {
  const auto d = difference({100, 100, 100}, {112, 108, 110});
  REQUIRE(d);
  // 8 over 4 degrees of freedom is 2 for A, and 8 over 2 is 4 for B.
  CHECK(d->error == Approx(std::sqrt(2.0 / 3 + 4.0 / 3)));
}

TEST_CASE("steps in a row that are alike tell less") {
  const Numbers apart = {99, 101, 99, 101, 99, 101, 99, 101};
  const Numbers in_a_row = {99, 99, 99, 99, 101, 101, 101, 101};
  // Five of seven neighbours together, on eight squares of 1: r = 5 / 8 + 2 / 16 = 3 / 4.
  CHECK(difference(in_a_row, in_a_row)->error ==
        Approx(difference(apart, apart)->error * std::sqrt(1.75 / 0.25)));
}

TEST_CASE("with fewer than three usual steps nothing is said") {
  CHECK_FALSE(difference({}, {}));
  CHECK_FALSE(difference({100, 101}, {100, 101, 102, 103}));
  CHECK_FALSE(difference({100, 101, 180}, {100, 101, 102, 103, 104}));
  CHECK(difference({100, 101, 102}, {100, 101, 102}));
}

TEST_CASE("checkpoints are left out, and steps that only vary are not") {
  const FarAbove some = far_above({100, 101, 140, 99, 141}, {100, 100, 99, 101, 139});
  CHECK(some.a == std::vector<bool>{false, false, true, false, true});
  CHECK(some.b == std::vector<bool>{false, false, false, false, true});
  const FarAbove none = far_above({100, 130, 80, 115, 90}, {95, 120, 85, 128, 101});
  CHECK(none.a == std::vector<bool>(5));
  CHECK(none.b == std::vector<bool>(5));
  // Half of the steps are no exception, and what is short is none either.
  CHECK(far_above({100, 140, 100, 140}, {100, 140, 100, 140}).a == std::vector<bool>(4));
  CHECK(far_above({100, 101, 50, 99, 100}, {100, 101, 99, 100}).a == std::vector<bool>(5));
  CHECK(difference({100, 101, 140, 99, 141}, {100, 100, 99, 101, 139})->b == Approx(100));
}

TEST_CASE(
    "more comparisons take more noise for chance, and nothing below a hundredth is a change") {
  const auto d = difference({100, 101, 99, 100, 102}, {100, 101, 99, 100, 102});
  REQUIRE(d);
  CHECK(d->noise(1) == Approx(student_t(0.01, d->freedom) * d->error));
  CHECK(d->noise(50) == Approx(student_t(0.0002, d->freedom) * d->error));
  CHECK(difference({100, 100, 100}, {100, 100, 100})->noise(1) == Approx(1));
}

TEST_CASE("the interval has the truth as often as it says") {
  for (const std::size_t n : {3, 5, 8, 20}) {
    CAPTURE(n);
    CHECK(covered(n, 0, 0) >= 372);  // 93 of 100
    CHECK(covered(n, 0.3, 0) >= 352);
    if (n > 3) CHECK(covered(n, 0, 3) >= 372);
  }
}

TEST_CASE("the same job on another day is no change") {
  std::mt19937_64 random(kSeed);
  int changed = 0;
  for (int pair = 0; pair < 1000; ++pair) {
    const std::size_t n = 3 + static_cast<std::size_t>(pair) % 20;
    const auto d = difference(normal(random, n, 100, 3), normal(random, n, 100, 3));
    changed += std::abs(d->b - d->a) > d->noise(10) ? 1 : 0;
  }
  CHECK(changed <= 3);  // a thousandth
}
