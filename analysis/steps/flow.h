// Finds where the pipeline that a rank is a stage of runs empty.
//
// A stage gets a gradient back for each activation that it passed on. After a step nothing is under
// way any more: it has as many messages from each neighbour as it gave to it. Within a step that is
// so only at a stage that answers each micro-batch at once, as the last one does in 1F1B.
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
  std::int64_t mine = 0;  // the ranks of both in it
  std::int64_t other = 0;
  bool leads = false;  // it gives what the other answers, else it answers
};

struct Flow {
  std::vector<Neighbour> neighbours;
  // When the rank went on from each place where it had got an answer to all, ascending.
  std::vector<std::int64_t> at_ns;
  // For each of these places and each neighbour: how many messages were sent, and how many
  // received.
  std::vector<std::uint64_t> sent;
  std::vector<std::uint64_t> received;
  // The places where what may be steps begins, then the one where the last ends. Empty if what is
  // between two is never the same.
  std::vector<std::size_t> steps;
  bool end_known = true;  // false: the rank called nothing behind the last place
  bool several = false;   // several micro-batches are in each
  // Two messages, at least, are under way before the first is answered; or a small reduction (a
  // loss, a norm) is between each and the next.
  bool told = false;

  std::size_t count() const { return steps.empty() ? 0 : steps.size() - 1; }
};

// Returns nothing if the rank has no neighbours that answer, or has too many for a stage.
// `closed`: the program came to its end. `end_ns`: when its last call ended.
std::optional<Flow> find_flow(const Sequence& sequence, const read::Process& rank, bool closed,
                              std::int64_t end_ns);

}  // namespace tprof::steps
