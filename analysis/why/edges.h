// The edges of the graph on which somebody may be slow. Each has an owner: a rank, of its kernels,
// its host and its copies, or a communicator, of its transfers. They also say how long they take if
// their owner is as quick as others that do the same, or as in its own usual step.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "why/slow_ranks.h"

namespace tprof::why {

using Series = std::vector<double>;  // by step of Edges::steps

// There are as many as calls and kernels.
struct Edge {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::uint32_t edge = 0;
  std::uint32_t owner = 0;  // a rank of the evidence; of transfers, one of Edges::comms
  std::uint32_t step = kNone;
  std::uint32_t from_step = kNone;  // a host's lag between two steps may be of either
  // Times of its lag that it has if its owner is as quick as the usual one of those that do the
  // same (of kernels Replays knows), as it is itself in the usual step, and if all ranks and
  // micro-batches of its stage compute as much (work.cpp).
  float as_others = 1;
  float as_usual = 1;
  float as_even = 1;
};

// By owner: what it needs in a step, in ns; of transfers, the mean of a communicator's ranks.
struct Needs {
  std::vector<Series> all{};
  std::vector<Series> beyond{};  // its own usual need, and that of the others there
  // Beyond the usual one of those that are alike, and beyond the middle one.
  std::vector<Series> more{};
  std::vector<Series> more_than_middle{};
};

struct Comm {
  std::string id;
  std::set<std::size_t> ranks{};
};

struct Edges {
  Places steps{};  // of Evidence::steps: those that are in the graph
  std::vector<Places> stages{};
  Places stage_of{};  // by rank; those whose stage is not known have one
  std::vector<Comm> comms{};
  std::array<std::vector<Edge>, kOfs> edges{};
  std::array<Needs, kOfs> needs{};

  const std::vector<Edge>& of(Of what) const { return edges[index(what)]; }
  const Needs& needs_of(Of what) const { return needs[index(what)]; }
  static std::size_t index(Of what) { return static_cast<std::size_t>(what); }
  std::uint32_t place(const Evidence& e, std::int64_t step) const;  // of `steps`
};

Edges edges_of(const Evidence& e);  // which has a model

// Set Edge::as_usual and Edge::as_even of the kernels; even, with these lags.
void find_usual_work(const Evidence& e, Edges& edges);
void find_even_work(const Evidence& e, const graph::Lags& lags, Edges& edges);

}  // namespace tprof::why
