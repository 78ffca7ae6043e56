// Ranks that take longer than the others for their own part of a step: slow_ranks.cpp tells of
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "why/cause.h"

namespace tprof::why {

enum class Of : std::uint8_t { kernels, host, copies, transfers };

struct SlowRanks {
  Places slow{};  // indices, ascending
  Of of{};
  Places steps{};      // in which they are, by place; empty: in all
  Places mended{};     // ranks that are slower, and told already
  bool named = false;  // they are all of a host, or a stage
  bool stage = false;  // they are one stage of a pipeline
  std::string comm{};  // whose transfers these are; empty: all of them
  bool alone = false;  // nothing tells what their hosts need: they are taken to need no time
};

// Ranks for which the others wait in some long steps, in each for half of the time by which that
// step is longer, or more.
struct HoldsUp {
  Places ranks{};
  Places steps{};
  std::size_t longest = 0;  // of these
  double ns = 0;            // by which these are longer
  bool by_host = false;     // in the longest: most of that is its host's
};
struct Lengths;
// Returns those of these steps, the one with most of the time first; none if nothing tells.
std::vector<HoldsUp> who_holds_up(const Evidence& e, const Lengths& all, const Places& steps);
// The first few of them, with their steps where these are not all `of_steps`.
check::Facts facts_of(const Evidence& e, const std::vector<HoldsUp>& who, std::size_t of_steps);
// Adds where its device stands idle in the longest of its steps, if that is why. `clear`: no
// other rank is told, and that step is the longest of all.
void tell_where_it_holds_up(const Evidence& e, const HoldsUp& who, bool clear, check::Finding& f);

// Leaves of the steps in which a rank holds the others up those that make up most of it. `saved`:
// what each step is shorter by without that, by place.
void leave_out_lesser(const Evidence& e, const std::vector<double>& saved, Places& steps);

}  // namespace tprof::why
