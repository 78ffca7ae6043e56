// The communicators of a job and their roles: data, tensor, pipeline or expert parallelism, or
// FSDP's shards and replicas. A role is known from the name or guessed from the calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/jobs.h"
#include "tables/totals.h"

namespace tprof::tables {

// A communicator, summed over its ranks.
struct CommSummary {
  std::string id;
  std::string name;           // empty: none
  std::string parent;         // id, empty: none
  std::string role;           // empty: unknown
  bool role_guessed = false;  // from its calls, not from its name
  bool role_sure = false;     // from its name, or a guess that crossing communicators confirm
  std::int64_t nranks = 0;
  std::vector<std::int64_t> ranks;        // world ranks that were seen
  std::uint64_t collectives = 0;          // the most issued by a rank
  std::optional<std::uint64_t> fewest{};  // the fewest issued by a rank; nullopt: unknown
  read::Amounts amounts;

  void issued(std::uint64_t by_a_rank) {
    fewest = std::min(fewest.value_or(by_a_rank), by_a_rank);
    collectives = std::max(collectives, by_a_rank);
  }
};

// "shard", or "shard?" for a guess; empty: unknown.
std::string role_text(const CommSummary& comm);
std::map<std::string, std::string> role_texts(const std::vector<CommSummary>& comms);  // by id

// Returns the communicators of a job, the largest first. `ops`: the calls of its processes. A guess
// of a role needs calls of autograd threads, which show the backward pass.
std::vector<CommSummary> communicators(const job::Job& job, const Ops& ops);

// Knows the words in frameworks' group names (PyTorch's device meshes, Megatron). Empty if the name
// has none of them.
std::string_view role_of_name(std::string_view name);

// True if a word such as "tp" or "data" selects a role, which may be a guess. Shards and replicas
// are data parallelism too.
bool asks_for(std::string_view word, std::string_view role);

// Returns certain roles by communicator id: from names, or guesses that crossing communicators
// confirm. In words for sentences: "tensor-parallel".
std::map<std::string, std::string, std::less<>> sure_roles(const job::Job& job);

}  // namespace tprof::tables
