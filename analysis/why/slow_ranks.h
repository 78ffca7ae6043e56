// Ranks that take longer than the others for their own part of a step: slow_ranks.cpp tells of
// them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "why/cause.h"
#include "why/changes.h"
#include "why/idle.h"

namespace tprof::why {

// A rank, or a communicator, may be slow by one of these.
enum class Of : std::uint8_t { kernels, host, copies, transfers };
inline constexpr std::size_t kOfs = 4;

// All places are ascending.
struct Slow {
  Places ranks{};  // of transfers: those whose link it may be
  Of of{};
  Places steps{};      // in which they are; empty: in all
  Places mended{};     // ranks that are slower, and told already
  bool named = false;  // they are all of a host, or a stage
  bool stage = false;  // they are one stage of a pipeline
  bool alone = false;  // nothing tells what their hosts need: they are taken to need no time
  Places comms{};      // of transfers: whose they are, places in Replays::comms

  const Places& owners() const { return of == Of::transfers ? comms : ranks; }
  bool has(std::size_t owner) const { return std::ranges::binary_search(owners(), owner); }
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

// Says where in its steps a device stands idle, and what to look at, if most of that lies in one
// place.
void tell_place(const Idle& idle, const Slow& slow, check::Finding& f);

inline constexpr std::size_t kMostRanks = 16;  // are tried by themselves: those that need most

// The ranks of real clusters differ by so much of a step without anybody's fault.
inline constexpr double kUsualShare = 0.02;

struct Tried {
  Slow slow;
  Saving saving;
};
// Returns the ranks that may be slow in some steps, and in which. `sets` may be slow together.
std::vector<Slow> candidates_at_times(const Evidence& e, const std::vector<Slow>& sets);
// The sets of ranks that may be slow together: stages of a pipeline, and hosts.
std::vector<Slow> sets_of(const Evidence& e);
// The host whose ranks these are, all of them and nobody else; empty if there is none, or but one.
std::string host_of(const Evidence& e, const Places& ranks);
// The steps of these in which they hold the others up, where these are not nearly all; none: once
// is chance, and long_steps tells it.
std::optional<Tried> slow_at_times(const Evidence& e, Slow slow);

}  // namespace tprof::why
