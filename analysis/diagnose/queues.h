// Collectives that stand behind each other, on each rank in an order of its own. A collective runs
// where all ranks that called it have come to it; what is left then waits in a circle.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "diagnose/last_collectives.h"
#include "diagnose/who.h"

namespace tprof::diagnose {

// A communicator's number in the job, and a collective of it.
using CollectiveOf = std::pair<std::size_t, std::uint64_t>;

struct Queued {
  CollectiveOf what{};
  const Called* call = nullptr;
};

// The calls of one rank, one after the other. Those of one place have no order among them.
struct Queue {
  const read::Process* process = nullptr;
  std::vector<std::vector<Queued>> places{};

  // Behind the last place, or in it if both are of a group.
  void add(const Queued& call);
  // The place at which it is; nullptr: nowhere.
  const Queued* find(const CollectiveOf& what, std::size_t* place = nullptr) const;
};

// A rank in which `then` stands behind `first`.
struct Behind {
  const Queue* queue = nullptr;
  Queued first{};
  Queued then{};
};

// Returns the first circle in which each waits for the next; empty: all of them can run. Refers to
// the queues.
std::vector<Behind> circle_of(const std::vector<Queue>& queues);

}  // namespace tprof::diagnose
