// A job as a graph with the ends of its steps: how long a step takes, and would take.
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

// The length of each step, by number; and their mean, 0 if there are none.
using StepsNs = std::map<std::int64_t, double>;
double mean_of(const StepsNs& steps);

// The position of a node in a step: that of its own call, or of the next call of its step to reach
// the device.
struct Position {
  static constexpr std::int64_t kNoStep = INT64_MIN;
  std::int64_t step = kNoStep;
  // The nth call of a communicator in a step has the same number on all ranks and in all steps,
  // however many calls of other communicators come between.
  std::uint32_t call = 0;
};

// Loads a job with its steps. If it has more than `most_calls` calls, only as many steps in its
// middle as there is room for.
run::Run run_of(const run::Lines& lines, const steps::Found& found, std::uint64_t most_calls);

class Model {
 public:
  // Keeps a reference to the run. `marked`: the program marks its steps.
  Model(const run::Run& run, bool marked);

  const run::Run& run() const { return run_; }
  const Graph& graph() const { return graph_; }
  bool marked() const { return marked_; }

  const StepsNs& measured_ns() const { return measured_ns_; }
  const StepsNs& replayed_ns() const { return replayed_ns_; }  // without a change
  // Replays with these lags and `more` edges. Empty: they make a cycle. Not thread-safe.
  StepsNs replayed_ns(std::span<const Lag> lags_ns, std::vector<Edge> more = {}) const;

  // The rows of a rank in the order of their host calls.
  std::span<const std::size_t> by_call(std::size_t rank) const { return by_call_[rank]; }

  Position position(Node n) const;  // none for a meeting's node
  // Returns the step that a rank's host was in; kNoStep: none.
  std::int64_t step_at(std::size_t rank, std::int64_t ns) const;

 private:
  // The end of a step of a rank.
  struct End {
    std::int64_t step;
    std::size_t from;            // the range of its calls in by_call()
    std::size_t to;              // exclusive
    std::optional<Node> at{};    // its mark, if the program marks steps
    std::optional<Node> work{};  // the last of its device's work
  };

  void find_positions(std::size_t rank);
  void find_last_work();
  // True if no other step is between these. Steps between windows have no lines.
  bool follows(std::int64_t before, std::int64_t step) const;
  // Returns the length of each step that follows another if nodes happen at these times: from when
  // the last rank had ended that one. A device's step ends when everything that its host called in
  // it has ended, and no earlier than the host's step.
  StepsNs steps_ns(std::span<const double> at_ns) const;

  bool marked_;
  const run::Run& run_;
  Graph graph_;
  std::vector<std::vector<std::size_t>> by_call_{};
  std::vector<std::vector<Position>> calls_at_{};  // by rank and row
  // By rank and row: the row that decides the position of work there (model.cpp).
  std::vector<std::vector<std::size_t>> next_call_{};
  std::map<Node, Position> marks_at_{};
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers_{};  // Position::call
  std::vector<std::vector<End>> ends_;  // by rank, ascending
  StepsNs measured_ns_;
  StepsNs replayed_ns_;
  mutable std::vector<double> at_ns_;  // room for a replay
};

}  // namespace tprof::graph
