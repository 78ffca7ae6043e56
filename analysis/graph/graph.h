// The steps of all ranks as one graph, and its replay: how long the same work would take if
// something were changed.
//
// The rules are CUDA's and NCCL's, those of tests/generator/simulate.py:
// - A call reaches the device when the work that it needs is done (places.h), the previous call on
//   its stream and on its communicator has ended, and the host has called it.
// - A meeting ends on each of its ranks one transfer after the last of them came.
// - Work that stood still until a call had ended waits for that call: a barrier. Work that needs a
//   received message also waits for it, even if it never stood still: a slow stage finds its
//   messages already there. Idle time that no call explains is the host's, and keeps its length.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

#include "graph/places.h"
#include "run/run.h"

namespace tprof::graph {

using Node = std::uint32_t;

// In ns. A float, since millions of edges take most of the memory, and a lag is known to 24 bits.
using Lag = float;
using Lags = std::vector<Lag>;         // by edge
inline constexpr Lag kNever = -1e18F;  // for an edge that is switched off

// Why a node waits for another one.
enum class Wait : std::uint8_t {
  turn,      // after the previous call of the stream or communicator, or the call's own begin
  place,     // the device's work has to get this far
  meeting,   // all ranks have to come, then the transfer
  computes,  // kernels run
  copies,    // a copy runs
  barrier,   // work goes on after a call
  host,      // the host's own time
  launch,    // launched work begins
  waited     // the host waited for the device
};

// The host made a call; it began a step; a call reached the device; it ended there; a point in the
// device's work; some ranks of a meeting had come.
enum class Kind : std::uint8_t { called, mark, came, ended, work, met };

struct Edge {
  Node from;
  Node to;
  Lag lag_ns;
  Wait wait;
};

// A node happens when, for each edge into it, the edge's lag has passed since the other node.
struct Graph {
  std::vector<std::int64_t> at_ns{};  // as measured
  std::vector<std::uint32_t> rank{};  // index into run::Run::ranks
  std::vector<Kind> kind{};
  // The edges into node n are first[n] to first[n + 1] - 1.
  std::vector<std::uint32_t> first{};
  std::vector<Node> from{};
  Lags lag_ns{};
  std::vector<Wait> wait{};
  std::vector<Node> order{};                 // topological
  std::vector<std::vector<bool>> assumed{};  // see Needs::assumed
  // By rank: the first node of its first row, and the range of its work nodes.
  std::vector<Node> rows{};
  std::vector<std::pair<Node, Node>> works{};
  // By rank: the nodes of its host, ascending, and how long the host waited for the device before
  // each.
  std::vector<std::vector<Node>> host{};
  std::vector<std::vector<std::int64_t>> waited_ns{};

  // The nodes of a row: called, reached the device, ended there.
  Node called(std::size_t of_rank, std::size_t row) const {
    return rows[of_rank] + static_cast<Node>(3 * row);
  }
  Node came(std::size_t of_rank, std::size_t row) const { return called(of_rank, row) + 1; }
  Node ended(std::size_t of_rank, std::size_t row) const { return called(of_rank, row) + 2; }
  // The node that an edge goes into.
  Node into(std::uint32_t edge) const {
    return static_cast<Node>(std::ranges::upper_bound(first, edge) - first.begin() - 1);
  }
  // The row of such a node.
  std::size_t row(Node n) const { return (n - rows[rank[n]]) / 3; }
  // The work nodes of a rank, ascending.
  auto work(std::size_t of_rank) const {
    return std::views::iota(works[of_rank].first, works[of_rank].second);
  }

  std::size_t size() const { return at_ns.size(); }
  // False: times contradict the rules, so that some nodes wait for each other in a cycle.
  bool sound() const { return order.size() == size(); }
};

// `marked`: the program marks its steps.
Graph graph_of(const run::Run& run, bool marked = false);

// Returns the index in Graph::host of what the host did first after the copy had blocked it.
std::size_t goes_on(const Graph& graph, std::size_t rank, const run::Blocked& copy);

// Returns when each node happens with these lags. The graph's own lags give the measured times,
// except where these contradict the rules. Returns nothing if `more` edges make a cycle. `room` is
// reused for the result: allocating it would take as long as the replay.
std::vector<double> replay(const Graph& graph, std::span<const Lag> lags_ns,
                           std::vector<Edge> more = {}, std::vector<double> room = {});
inline std::vector<double> replay(const Graph& graph) {
  return replay(graph, graph.lag_ns);
}

}  // namespace tprof::graph
