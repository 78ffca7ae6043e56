// The calls with which each pass of a rank gathered and reduced, by communicator.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "stats/passes.h"

namespace tprof::stats {

// The calls of one communicator, without flags and scales.
struct PassCalls {
  Places gathers{};   // before the backward pass
  Places again{};     // in it
  Places scatters{};  // in it, or directly after it
  Places reduces{};   // including norms
};

struct CommCalls {
  std::map<std::size_t, PassCalls> passes{};  // by number
  std::set<std::uint64_t> gathered{};         // counts that are gathered before a backward pass
  std::set<std::uint64_t> activations{};      // counts that are reduced there
  bool scatters_ahead = false;                // something is scattered there
  std::uint64_t reduced_bytes = 0;
  std::uint64_t other_bytes = 0;  // gathered or scattered in backward passes
};

struct CallsOfPasses {
  std::map<std::int64_t, CommCalls> comms{};
  std::vector<std::int64_t> steps{};  // of each pass
  Places all{};                       // including flags and scales
  std::uint64_t least_gradient = 0;
};

CallsOfPasses calls_of_passes(const RestCalls& rank, const Passes& passes);

}  // namespace tprof::stats
