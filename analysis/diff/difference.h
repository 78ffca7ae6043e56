// How sure a difference between the steps of two runs is.
//
// 1. Steps that stand out from most (a checkpoint, an evaluation) are no usual ones, and are
//    left out: those beyond the median by three deviations and 4 % of it. The deviation is that of
//    the median distance to the median (Hampel, The influence curve, JASA 69, 1974), which half of
//    the steps can't move, of both runs together, since few steps tell little of it.
// 2. The difference is that of the means of the others, with the interval of Student's t. A median
//    would need no first rule, but of the five steps of a short run its interval is twice as wide.
//    The spread of a run is taken no smaller than that of both together.
// 3. Steps in a row are alike (temperature, neighbours on the network), so n of them tell less than
//    n. They count as n (1 - r) / (1 + r), where r is the correlation of a step with the next one
//    (Bayley and Hammersley, The effective number of independent observations in an autocorrelated
//    time series, 1946), and what its estimate is too low by, 1 / n, is added (Kendall, Note on
//    bias in the estimation of autocorrelation, Biometrika 41, 1954).
//
// By simulation the interval has the truth in 94 to 98 of 100 cases, with steps of 3 to 20, a third
// of them far above, and in 93 with r = 0.3; with r = 0.6 it takes 20 steps for 91 of 100.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace tprof::diff {

double median(std::vector<double> values);  // at least one

inline constexpr std::size_t kFewestUsual = 3;  // with fewer usual steps of a run nothing is said

struct Difference {
  double a = 0;  // means
  double b = 0;
  double error = 0;    // standard error of b - a
  double freedom = 1;  // degrees of it

  std::pair<double, double> interval() const;  // of b - a, 95 %
  // Returns what b - a may be by chance, where so many figures are compared, and one false alarm in
  // a hundred pairs of runs is let pass (Bonferroni). At least 1 % of `a`.
  double noise(std::size_t comparisons) const;
};

// Nullopt: too few steps. The values are in the order of the steps.
std::optional<Difference> difference(const std::vector<double>& a, const std::vector<double>& b);

// The steps of both runs that stand out. Many more steps do than take far longer in the words of
// `tprof report` (why/step_series.cpp): these change a mean, those are worth a look.
struct FarAbove {
  std::vector<bool> a;
  std::vector<bool> b;
};
FarAbove far_above(const std::vector<double>& a, const std::vector<double>& b);

// As difference(), without the first rule but for steps that are `far`; empty: none are.
std::optional<Difference> difference(const std::vector<double>& a, const std::vector<double>& b,
                                     const FarAbove& far);

// The t that a value of Student's distribution is beyond, on either side, with this probability.
double student_t(double probability, double freedom);

}  // namespace tprof::diff
