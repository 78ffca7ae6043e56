// A job as a graph, and where its steps end in it: what a step takes, and would take.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "steps/found.h"

namespace tprof::graph {

// The place of a node in a step: that of its call, or of the next call that comes to the device.
struct Position {
  static constexpr std::int64_t kNoStep = INT64_MIN;
  std::int64_t step = kNoStep;
  std::uint32_t call = 0;  // how many the host had made in the step before it
};

class Model {
 public:
  // A job with more calls than `most_calls` is taken by some of its steps, one after the other.
  Model(const job::Job& job, const read::Traces& traces, const steps::Found& found,
        std::uint64_t most_calls);

  const run::Run& run() const { return run_; }
  const Graph& graph() const { return graph_; }

  // Returns how long a step takes, where the nodes happen at these times: the mean over ranks and
  // steps but the first. A step of a device ends with the last that its host called in it. 0: not
  // known.
  double step_ns(std::span<const double> at_ns) const;
  double measured_ns() const { return measured_ns_; }
  double replayed_ns() const { return replayed_ns_; }  // without a change

  const Position& position(Node n) const { return positions_[n]; }

  // For how long the device of a rank computes in a step, on the average.
  double work_ns(std::size_t rank) const;

 private:
  // The ends of the first and of the last step of a rank.
  struct Ends {
    Node first = 0;
    Node last = 0;
    std::size_t steps = 0;  // between them; 0: none are known
  };

  void find_positions_of_calls(std::size_t rank, const std::vector<steps::Interval>& steps);
  void find_positions_of_work();  // behind those of calls

  run::Run run_;
  Graph graph_;
  std::vector<Position> positions_;  // by node
  std::vector<Ends> ends_;           // by rank
  double measured_ns_ = 0;
  double replayed_ns_ = 0;
};

}  // namespace tprof::graph
