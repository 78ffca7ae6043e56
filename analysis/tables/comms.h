// The communicators of a job, and what they are for: data, tensor, pipeline or expert parallelism,
// or the shards and replicas of FSDP. A name says so, or what its ranks carry allows a guess.
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

// A communicator as all its ranks together saw it.
struct CommSummary {
  std::string id;
  std::string name;           // empty: none
  std::string parent;         // id, empty: none
  std::string role;           // empty: not known
  bool role_guessed = false;  // from what it carries, not from its name
  bool role_sure = false;     // its name says it, or those that cross it bear the guess out
  std::int64_t nranks = 0;
  std::vector<std::int64_t> ranks;        // in the world, as far as they were seen
  std::uint64_t collectives = 0;          // issued by the rank that issued most
  std::optional<std::uint64_t> fewest{};  // issued by a rank; nothing: not known
  read::Amounts amounts;

  void issued(std::uint64_t by_a_rank) {
    fewest = std::min(fewest.value_or(by_a_rank), by_a_rank);
    collectives = std::max(collectives, by_a_rank);
  }
};

// "shard", or "shard?" where that is a guess; empty: not known.
std::string role_text(const CommSummary& comm);
std::map<std::string, std::string> role_texts(const std::vector<CommSummary>& comms);  // by id

// Returns the communicators of a job, the largest first. `ops` are the calls of its processes.
// Their roles are set where something is known: a guess needs calls of autograd threads, which tell
// what belongs to the backward pass.
std::vector<CommSummary> communicators(const job::Job& job, const Ops& ops);

// Goes by the words with which frameworks name groups (PyTorch's device meshes, Megatron). Empty if
// the name has none of them.
std::string_view role_of_name(std::string_view name);

// True if a word such as "tp" or "data" asks for communicators of a role, which may be a guess.
// Shards and replicas are data parallelism too.
bool asks_for(std::string_view word, std::string_view role);

// The roles that are sure, by the communicators' ids: their names say them, or what they carry does
// and other communicators of the job cross them as they should. Words for sentences:
// "tensor-parallel".
std::map<std::string, std::string, std::less<>> sure_roles(const job::Job& job);

}  // namespace tprof::tables
