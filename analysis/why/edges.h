// The edges of the graph that a slow rank or link stretches. Each has an owner: a rank for its
// kernels, host and copies, a link for its transfers. An edge also knows how long it takes if its
// owner is as fast as others that do the same, or as in its own usual step.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "why/slow_ranks.h"

namespace tprof::why {

using Series = std::vector<double>;  // indexed as Edges::steps

// Kept small: there is one for each call and kernel.
struct Edge {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::uint32_t edge = 0;
  std::uint32_t owner = 0;  // index into Times::ranks; for transfers, into Edges::links
  std::uint32_t step = kNone;
  std::uint32_t from_step = kNone;  // a host's lag between two steps may belong to either
  // The lag is multiplied by these if its owner is as fast as the usual owner that does the same
  // (Replays handles kernels), as fast as in its own usual step, or ideal: if all ranks and
  // micro-batches of its stage compute equally much (work.cpp), or the host needs no time, so that
  // only the copies that block it are left.
  float as_others = 1;
  float as_usual = 1;
  float as_ideal = 1;
};

// By owner: the time that it needs in a step, in ns; for transfers, the mean over the link's ranks.
struct Needs {
  std::vector<Series> all{};
  std::vector<Series> beyond{};  // beyond its own usual need and that of the others in this step
  // Beyond the usual value of comparable owners, and beyond their median.
  std::vector<Series> more{};
  std::vector<Series> more_than_middle{};
};

// The way of a communicator's transfers, of the messages between two ranks, or of a rank's messages
// with several others at once.
struct Link {
  // A link may be slow one way.
  enum class Way : std::uint8_t { all, up, down };  // of messages alone: to the higher rank or not
  struct What {
    Bucket bucket{};
    std::int64_t size_class = 0;
    Way way = Way::all;
    auto operator<=>(const What&) const = default;
  };
  // Transfers of one kind that take longer than on the other links that carry the same.
  struct Slow {
    What what{};
    double ns = 0;
    double usual_ns = 0;
    std::size_t others = 0;  // links on which they are not slow
  };

  std::string comm;  // id
  bool messages = false;
  std::set<std::size_t> ranks{};
  std::vector<Slow> slow{};
};

struct Edges {
  Places steps{};  // indices into Evidence::steps: those in the graph
  std::vector<Places> stages{};
  Places role_of{};   // by rank
  Places stage_of{};  // by rank; those of a role without a known stage share one
  std::vector<Link> links{};
  std::array<std::vector<Edge>, kOfs> edges{};
  std::array<Needs, kOfs> needs{};

  const std::vector<Edge>& of(Of what) const { return edges[index(what)]; }
  const Needs& needs_of(Of what) const { return needs[index(what)]; }
  static std::size_t index(Of what) { return static_cast<std::size_t>(what); }
  std::uint32_t place(const Evidence& e, std::int64_t step) const;  // index into `steps`
};

Edges edges_of(const Evidence& e);  // needs a model

// Adds the links, with the edges of their transfers.
void find_transfers(const Evidence& e, Edges& edges);

}  // namespace tprof::why
