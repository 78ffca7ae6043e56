// Replays the job as if the program made some of its calls differently.
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

struct Evidence;

// By how much a step would be shorter. The doubt is twice the standard error over the steps plus
// the error of a replay without a change.
struct Saving {
  double ns = 0;
  double doubt = 0;
};
// `in`: the steps that were changed; empty: all.
Saving saving_of(const graph::Model& model, const graph::StepsNs& before,
                 const graph::StepsNs& behind, const std::set<std::int64_t>& in = {});

using Rows = std::span<const std::size_t>;  // rows of one rank

class Changes {
 public:
  // The slow ranks and links found so far are as fast as the others.
  explicit Changes(const Evidence& e);

  // The call is not made, so no rank waits for it. `host`: nor does the host spend time to prepare
  // it or to read its result.
  void leave_out(std::size_t rank, std::size_t row, bool host = false);
  // The call needs no earlier computation beyond what it is seen to wait for.
  void needs_nothing(std::size_t rank, std::size_t row) { free_.insert(g_.came(rank, row)); }
  // Multiplies the time of its transfer.
  void scale(std::size_t rank, std::size_t row, double times);
  // The call reaches the device as soon as the host has called it and its queues are free. Returns
  // false if it already does.
  bool come_early(std::size_t rank, std::size_t row);
  // Runs these calls of a communicator in this order.
  void reorder(std::size_t rank, Rows rows);
  // The host no longer waits for this copy.
  void unblock(std::size_t rank, const run::Blocked& copy);

  // Multiplies the time of all transfers of this bucket and size class (floor(log2(bytes of a
  // call))) on a communicator.
  void scale(const std::string& comm, Bucket bucket, std::int64_t size_class, double times);

  Saving saving() const;

 private:
  void find_out();
  auto out_of(graph::Node from) const {
    return std::ranges::equal_range(out_, from, {}, [&](auto edge) { return g_.from[edge]; });
  }
  template <typename F>
  void each_edge(graph::Node into, F&& f);

  const graph::Model& model_;
  const graph::Graph& g_;
  graph::Lags lags_;
  const graph::StepsNs& before_;
  std::vector<graph::Edge> more_{};
  std::set<graph::Node> free_{};                     // arrivals of calls that need no computation
  std::map<graph::Node, std::int64_t> waited_ns_{};  // waits of hosts, less unblocked copies
  std::vector<std::uint32_t> out_{};                 // edges by source; empty until needed
};

// Calls f(rank, its rows of a step in the order of their host calls) for all ranks and steps except
// the first.
void each_step(const graph::Model& model, const std::function<void(std::size_t, Rows)>& f);

}  // namespace tprof::why
