// What each pass of a rank gathered and reduced, by communicator.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "stats/passes.h"

namespace tprof::stats {

// Of one communicator. More than flags and scales.
struct PassCalls {
  Places gathers{};   // before the backward pass
  Places again{};     // in it
  Places scatters{};  // in it, or directly behind it
  Places reduces{};   // norms too
};

struct CommCalls {
  std::map<std::size_t, PassCalls> passes{};  // by number
  std::set<std::uint64_t> gathered{};         // counts, before a backward pass
  std::set<std::uint64_t> activations{};      // that are reduced there
  bool scatters_ahead = false;                // there, too
  std::uint64_t reduced_bytes = 0;
  std::uint64_t other_bytes = 0;  // gathered or scattered in backward passes
};

struct CallsOfPasses {
  std::map<std::int64_t, CommCalls> comms{};
  std::vector<std::int64_t> steps{};  // of each pass
  Places all{};                       // flags and scales too
  std::uint64_t least_gradient = 0;
};

CallsOfPasses calls_of_passes(const RestCalls& rank, const Passes& passes);

}  // namespace tprof::stats
