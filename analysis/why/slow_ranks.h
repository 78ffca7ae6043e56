// Ranks that take longer than the others for a part of their steps: slow_ranks.cpp tells of them.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "why/changes.h"
#include "why/own_times.h"

namespace tprof::why {

struct Lengths;

// The usual is what three quarters of the ranks take at least: those of one host of two may be
// slow, which are half of them.
inline constexpr double kUsual = 0.25;
inline constexpr double kTimesUsual = 6;  // of the spread among ranks, or among steps

// A part of the ranks' own time, and of each rank what it has of that beyond the usual.
struct OfPart {
  OfPart(Grid of_part, double least_ns);

  Grid ns;
  std::vector<double> typical{};  // the median of its steps
  std::vector<double> error{};    // of that
  std::vector<double> mean{};
  // That, where all are alike, it has least_ns more than the middle rank in so many steps.
  std::vector<double> chance{};
};
using Parts = std::vector<OfPart>;  // as kPartsToTell has them
inline const OfPart& of(const Parts& parts, Part part) {
  return parts[static_cast<std::size_t>(part)];
}

struct SlowRanks {
  Places slow;         // indices, ascending
  Part part{};         // in which they are
  Places steps{};      // in which they are, by place; empty: in all
  Places mended{};     // ranks that are slower, and told already
  bool stage = false;  // they are one stage of a pipeline
};

// Says of devices that stand idle where in their steps that is.
void tell_place(const Evidence& e, const SlowRanks& ranks, diagnose::Finding& f);

// A rank for which the others wait in some long steps, in each for half of the time by which that
// step is longer, or more.
struct HoldsUp {
  std::size_t rank = 0;
  Places steps{};
  std::size_t longest = 0;  // of these
  double ns = 0;            // by which these are longer
};
// Returns those of these steps, the one with most of the time first; none if nothing tells.
std::vector<HoldsUp> who_holds_up(const Evidence& e, const Lengths& all, const Places& steps);
// The first few of them, with their steps where these are not all `of_steps`.
diagnose::Facts facts_of(const Evidence& e, const std::vector<HoldsUp>& who, std::size_t of_steps);
// Adds where its device stands idle in the longest of its steps, if that is why. `clear`: no
// other rank is told, and that step is the longest of all.
void tell_where_it_holds_up(const Evidence& e, const HoldsUp& who, bool clear,
                            diagnose::Finding& f);

// For each rank the steps in which it held the others up, where these are not nearly all.
std::vector<SlowRanks> slow_at_times(const Evidence& e, const Grid& own);

// Tells in which part most of the time lies that a rank takes beyond the others in some steps.
// Nullopt: in none.
std::optional<Part> part_of(const SlowRanks& ranks, const Grid& own, const Parts& parts);

}  // namespace tprof::why
