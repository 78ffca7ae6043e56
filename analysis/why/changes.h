// Replays the job with other lags, as if the program made some of its calls otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "graph/model.h"

namespace tprof::why {

// A step would be shorter by so much. The doubt is twice the standard error over the steps, and by
// how much a replay without a change differs from the measured step.
struct Saving {
  double ns = 0;
  double doubt = 0;
};
// Only `in` these steps something is changed; empty: in all.
Saving saving_of(const graph::Model& model, const graph::StepsNs& before,
                 const graph::StepsNs& behind, const std::set<std::int64_t>& in = {});

using Rows = std::span<const std::size_t>;  // of a rank

class Changes {
 public:
  explicit Changes(const graph::Model& model);

  // A call is not made: nobody waits for it. `host`: nor does the program prepare it, or read what
  // it gives.
  void leave_out(std::size_t rank, std::size_t row, bool host = false);
  // It needs nothing of what is computed before it, beyond what it is seen to wait for.
  void needs_nothing(std::size_t rank, std::size_t row) { free_.insert(g_.came(rank, row)); }
  // Its transfer takes so many times as long.
  void scale(std::size_t rank, std::size_t row, double times);
  // It comes when the host has called it and its queues are free, wherever the work is. False: it
  // does so anyway.
  bool come_early(std::size_t rank, std::size_t row);
  // These calls of a communicator run in this order.
  void reorder(std::size_t rank, Rows rows);
  // The host does not wait for this copy.
  void unblock(std::size_t rank, const run::Blocked& copy);

  // All transfers of a bucket and size (floor(log2(bytes of a call))) on a communicator do.
  void scale(const std::string& comm, Bucket bucket, std::int64_t size_class, double times);

  Saving saving() const;

 private:
  void find_out();
  template <typename F>
  void each_edge(graph::Node into, F&& f);

  const graph::Model& model_;
  const graph::Graph& g_;
  graph::Lags lags_;
  std::vector<graph::Edge> more_{};
  std::set<graph::Node> free_{};                     // calls come, that need nothing
  std::map<graph::Node, std::int64_t> waited_ns_{};  // by what copies had kept, without those
  struct Out {
    graph::Node from;
    std::uint32_t edge;
    graph::Node to;
  };
  std::vector<Out> out_{};  // edges by the node that they leave; empty: nobody has asked for them
};

// Calls f(rank, its rows of a step by when they were called) for all ranks and steps. The first one
// does not count, but where it ends is where the next begins.
void each_step(const graph::Model& model, const std::function<void(std::size_t, Rows)>& f);

}  // namespace tprof::why
