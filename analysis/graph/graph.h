// The steps of all ranks as one graph, and its replay: the times that the same work would take if
// something were otherwise.
//
// The rules are CUDA's and NCCL's, those of tests/generator/simulate.py:
// - A call comes to the device when the work is done that it needs (places.h), the call before it
//   on its stream and on its communicator has ended, and the host has called it.
// - A meeting ends on each of its ranks a transfer after the last of them came.
// - Where work stood still until a call had ended, it waits for that call: a barrier. Nor does a
//   rank compute what it was to receive a message for before that has come, though it may never
//   have stood still: a stage that is slower than the others has all it needs. Idle time is
//   the host's where no call explains it, and stays as long as it was.
#pragma once

#include <cstdint>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

#include "graph/places.h"
#include "run/run.h"

namespace tprof::graph {

using Node = std::uint32_t;

// In ns. A graph of millions of edges is what takes most room, and 24 bits are known of a lag.
using Lag = float;
using Lags = std::vector<Lag>;         // by edge
inline constexpr Lag kNever = -1e18F;  // of an edge that nobody waits for any more

// Why a node waits for another one.
enum class Wait : std::uint8_t {
  turn,      // a stream's or communicator's calls run one after the other; a call's own begin
  place,     // the device's work has to have come so far
  meeting,   // all have to have come, and then the transfer
  computes,  // kernels run
  copies,    // a copy runs
  barrier,   // work goes on when a call has ended
  host,      // the host went on by itself
  launch,    // what the host launched begins
  waited     // the host had waited for the device
};

// The host called, or began a step; a call came to the device; it ended there; the device computed
// up to here; those that meet had come.
enum class Kind : std::uint8_t { called, mark, came, ended, work, met };

struct Edge {
  Node from;
  Node to;
  Lag lag_ns;
  Wait wait;
};

// A node happens when each node that it waits for has happened, by at least the edge's lag.
struct Graph {
  std::vector<std::int64_t> at_ns{};  // as measured
  std::vector<std::uint32_t> rank{};  // of run::Run::ranks
  std::vector<Kind> kind{};
  // The edges into node n are first[n] to first[n + 1] - 1.
  std::vector<std::uint32_t> first{};
  std::vector<Node> from{};
  Lags lag_ns{};
  std::vector<Wait> wait{};
  std::vector<Node> order{};                 // each behind those that it waits for
  std::vector<std::vector<bool>> assumed{};  // as of Needs::assumed
  // By rank: its first row's first node, and its first node of work and the one behind its last.
  std::vector<Node> rows{};
  std::vector<std::pair<Node, Node>> works{};
  // By rank: what its host did, ascending, and for how long it had waited for its device before.
  std::vector<std::vector<Node>> host{};
  std::vector<std::vector<std::int64_t>> waited_ns{};

  // When a row was called, came to the device, and ended there.
  Node called(std::size_t of_rank, std::size_t row) const {
    return rows[of_rank] + static_cast<Node>(3 * row);
  }
  Node came(std::size_t of_rank, std::size_t row) const { return called(of_rank, row) + 1; }
  Node ended(std::size_t of_rank, std::size_t row) const { return called(of_rank, row) + 2; }
  // The row of a node that is one of these.
  std::size_t row(Node n) const { return (n - rows[rank[n]]) / 3; }
  // The work of a rank, ascending.
  auto work(std::size_t of_rank) const {
    return std::views::iota(works[of_rank].first, works[of_rank].second);
  }

  std::size_t size() const { return at_ns.size(); }
  // False: some nodes wait for each other in a circle, as times contradict the rules.
  bool sound() const { return order.size() == size(); }
};

// `marked`: the program marks its steps.
Graph graph_of(const run::Run& run, bool marked = false);

// The host did this first when it was no longer blocked. Its place in Graph::host.
std::size_t goes_on(const Graph& graph, std::size_t rank, const run::Blocked& copy);

// Returns when each node happens where the edges have these lags. With the graph's own it gives the
// times that were measured, but for where these contradict the rules. With `more` edges, it is
// empty where some nodes wait for each other in a circle. The times are put into `room`: to map
// and clear it anew for each of many replays takes as long as they do.
std::vector<double> replay(const Graph& graph, std::span<const Lag> lags_ns,
                           std::vector<Edge> more = {}, std::vector<double> room = {});
inline std::vector<double> replay(const Graph& graph) {
  return replay(graph, graph.lag_ns);
}

}  // namespace tprof::graph
