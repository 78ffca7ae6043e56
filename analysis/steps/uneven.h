// Steps that reduce the same gradients, whatever else they do: where they have different numbers of
// micro-batches, what is between the last reductions of two steps is not the same.
#pragma once

#include <optional>

#include "steps/anchor.h"

namespace tprof::steps {

// Whether between some occurrences as much is reduced as between two others: a step is missing.
bool holds_two(const Order& text, const Anchor& a);

struct Uneven {
  Anchor anchor;
  std::size_t start = 0;  // of the first step
  // What a micro-batch calls shows that it is none of an evaluation: it gathers for its backward
  // pass too, or reduces activations there. Where it only brings in a batch nothing does.
  bool told = false;
  bool mostly_alike = false;  // half of the steps or more
};

// The last reduction of each step, by the order of reductions on one communicator alone, which
// repeats from the beginning to the end; the first step may make its buckets anew (DDP). A batch
// comes in for each, and besides its gradients a step calls what so many micro-batches do.
std::optional<Uneven> find_uneven(const Order& text);

}  // namespace tprof::steps
