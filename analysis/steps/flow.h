// Finds where a rank's pipeline runs empty.
//
// A stage gets a gradient back for each activation that it passed on. After a step nothing is under
// way: each neighbour has sent as many messages as it received. Within a step that happens only at
// a stage that answers each micro-batch at once, as the last stage of 1F1B does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "read/process.h"
#include "steps/sequence.h"

namespace tprof::steps {

// The messages of one rank with another.
struct Neighbour {
  std::string comm{};     // the id of their communicator
  std::int64_t mine = 0;  // the ranks of both in that communicator
  std::int64_t other = 0;
  bool leads = false;  // true: it sends first and the other answers
};

struct Flow {
  std::vector<Neighbour> neighbours;
  // When the rank went on from each place where nothing was under way, ascending.
  std::vector<std::int64_t> at_ns;
  // Messages sent and received until each of these places, by neighbour.
  std::vector<std::uint64_t> sent;
  std::vector<std::uint64_t> received;
  // The places where possible steps begin, then the one where the last ends. Empty if nothing
  // between two places repeats.
  std::vector<std::size_t> steps;
  bool end_known = true;  // false: the rank called nothing after the last place
  bool several = false;   // each has several micro-batches
  // At least two messages are under way before the first is answered, or a small reduction (a loss,
  // a norm) separates the steps: then they are no micro-batches.
  bool told = false;

  std::size_t count() const { return steps.empty() ? 0 : steps.size() - 1; }
};

// Returns nothing if no neighbour answers the rank, or it has too many neighbours for a stage.
// `closed`: the program ran to its end. `end_ns`: when its last call ended.
std::optional<Flow> find_flow(const Sequence& sequence, const read::Process& rank, bool closed,
                              std::int64_t end_ns);

}  // namespace tprof::steps
