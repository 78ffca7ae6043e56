// Ranks that take longer than the others for their own part of a step.
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

// The reasons why a rank, or a link, is slow.
enum class Of : std::uint8_t { kernels, host, copies, transfers };
inline constexpr std::size_t kOfs = 4;

// All index lists are ascending.
struct Slow {
  Places ranks{};  // for transfers: those whose link it may be
  Of of{};
  Places steps{};      // in which they are slow; empty: in all
  Places mended{};     // slower ranks, which were reported before
  bool named = false;  // they make up a host or a stage
  bool stage = false;  // they are one stage of a pipeline
  bool alone = false;  // no other host to compare with: assume theirs need no time
  Places links{};      // for transfers: indices into Replays::links

  const Places& owners() const { return of == Of::transfers ? links : ranks; }
  bool has(std::size_t owner) const { return std::ranges::binary_search(owners(), owner); }
  bool has_rank(std::size_t r) const { return std::ranges::binary_search(ranks, r); }
};

// Ranks that the others wait for in some long steps, in each for at least half of its excess
// length.
struct HoldsUp {
  Places ranks{};
  Places steps{};
  std::size_t longest = 0;  // the longest of these steps
  double ns = 0;            // the sum of their excess lengths
  bool by_host = false;     // in the longest step: mostly the host's time
};
struct Lengths;
// Returns the ranks that hold up these steps, sorted by time; empty if unknown.
std::vector<HoldsUp> who_holds_up(const Evidence& e, const Lengths& all, const Places& steps);
// Describes the first few, with their steps if these are not all `of_steps`.
check::Facts facts_of(const Evidence& e, const std::vector<HoldsUp>& who, std::size_t of_steps);
// Adds where its device is idle in its longest step, if the host is the reason. `clear`: no other
// rank is named, and that step is the longest of all.
void tell_where_it_holds_up(const Evidence& e, const HoldsUp& who, bool clear, check::Finding& f);

// Says where in its steps a device is idle, and what to look at, if one place has most of it.
void tell_place(const Idle& idle, const Slow& slow, check::Finding& f);

inline constexpr std::size_t kMostRanks = 16;  // the most that are tried one by one

// Ranks of real clusters differ by this share of a step without a fault.
inline constexpr double kUsualShare = 0.02;

// Less in each of some steps is not looked at.
inline constexpr double kSomeStepsShare = 0.03;

struct Tried {
  Slow slow;
  Saving saving;
};
// Returns the ranks that may be slow in some steps, and in which. `sets`: ranks that may be slow
// together.
std::vector<Slow> candidates_at_times(const Evidence& e, const std::vector<Slow>& sets);
// Returns sets of ranks that may be slow together: pipeline stages and hosts.
std::vector<Slow> sets_of(const Evidence& e);
// Returns the host with exactly these ranks; empty if there is none, or just one rank.
std::string host_of(const Evidence& e, const Places& ranks);
// Keeps the steps in which they hold up the others. Nothing if fewer than two are left: a single
// one may be chance, and long_steps reports it.
std::optional<Tried> slow_at_times(const Evidence& e, Slow slow);

}  // namespace tprof::why
