// A job as a graph, and where its steps end in it: what a step takes, and would take.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "steps/found.h"

namespace tprof::graph {

// Each step takes so long, by its number; and the mean of them, 0 of none.
using StepsNs = std::map<std::int64_t, double>;
double mean_of(const StepsNs& steps);

// The place of a node in a step: that of its own call, or of the next call of its step that comes
// to the device.
struct Position {
  static constexpr std::int64_t kNoStep = INT64_MIN;
  std::int64_t step = kNoStep;
  // Calls have a number if they are the nth of the rank's communicator in a step, the same on all
  // ranks and in all steps, however many calls of other communicators are between them.
  std::uint32_t call = 0;
};

// Loads a job with its steps. If it has more calls than `most_calls`, only the steps in its middle
// are loaded, as many as there is room for.
run::Run run_of(const run::Lines& lines, const steps::Found& found, std::uint64_t most_calls);

class Model {
 public:
  // Refers to the run. `marked`: the program marks its steps.
  Model(const run::Run& run, bool marked);

  const run::Run& run() const { return run_; }
  const Graph& graph() const { return graph_; }
  bool marked() const { return marked_; }

  const StepsNs& measured_ns() const { return measured_ns_; }
  const StepsNs& replayed_ns() const { return replayed_ns_; }  // without a change
  // Returns them as these lags and `more` edges make them. Empty: some nodes wait in a circle. Not
  // from several threads at a time.
  StepsNs replayed_ns(std::span<const Lag> lags_ns, std::vector<Edge> more = {}) const;

  // The rows of a rank by when they were called.
  std::span<const std::size_t> by_call(std::size_t rank) const { return by_call_[rank]; }

  Position position(Node n) const;  // none of a node for those that meet
  // In which step the host of a rank was then; kNoStep: in none.
  std::int64_t step_at(std::size_t rank, std::int64_t ns) const;

 private:
  // The end of a step of a rank.
  struct End {
    std::int64_t step;
    std::size_t from;        // its calls in by_call(), and
    std::size_t to;          // behind the last of them
    std::optional<Node> at;  // its mark, if the program marks steps
  };

  void find_positions(std::size_t rank);
  // Returns how long each step but the first takes, where the nodes happen at these times: the mean
  // over the ranks. A step of a device ends when all has ended that its host called in it, and no
  // earlier than the host's own.
  StepsNs steps_ns(std::span<const double> at_ns) const;

  bool marked_;
  const run::Run& run_;
  Graph graph_;
  std::vector<std::vector<std::size_t>> by_call_{};
  std::vector<std::vector<Position>> calls_at_{};  // by rank and row
  // By rank and row: of those that come with it or later, the first of the first step.
  std::vector<std::vector<std::size_t>> next_call_{};
  std::map<Node, Position> marks_at_{};
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers_{};  // Position::call
  std::vector<std::vector<End>> ends_;  // by rank, ascending
  StepsNs measured_ns_;
  StepsNs replayed_ns_;
  mutable std::vector<double> at_ns_;  // room for a replay
};

}  // namespace tprof::graph
