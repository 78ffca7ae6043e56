// Checks that all ranks of a communicator issued the same collectives, using only the counts and
// signatures of the ledgers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "check/names.h"
#include "job/jobs.h"

namespace tprof::check {

// One rank of a communicator, as its process saw it.
struct Member {
  const read::Process* process = nullptr;
  const read::Comm* comm = nullptr;
  const read::Collectives* done = nullptr;  // null if no ledger gives exact counts

  std::uint64_t count() const { return done->count; }
  bool did(std::uint64_t seq) const { return done != nullptr && done->count > seq; }
  std::optional<std::int64_t> rank() const { return process->header.rank; }  // in the world
  bool closed() const { return process->end == read::End::closed; }
  bool dumped() const { return process->end == read::End::dumped; }
};
using Members = std::vector<const Member*>;

inline Processes processes_of(const auto& members) {  // takes members, or pointers to them
  Processes processes;
  for (const auto& m : members) {
    if constexpr (requires { m.process; }) {
      processes.push_back(m.process);
    } else {
      processes.push_back(m->process);
    }
  }
  return processes;
}

// A communicator, joined over the ranks of a job.
struct Communicator {
  std::string id;
  std::string name;  // empty: none
  std::int64_t nranks = 0;
  std::vector<Member> members;  // in the order of their ranks
  std::uint64_t sends = 0;      // of all members, by their ledgers
  std::uint64_t receives = 0;
};

// Returns the member that has this rank in the communicator; null: it is not known.
const Member* member_of(const Communicator& communicator, std::int64_t rank);

// Returns the members that issued this collective.
Members who_did(const Communicator& communicator, std::uint64_t seq);
// Returns those that are known to have issued so many.
Members who_issued(const Communicator& communicator, std::uint64_t collectives);

// Returns the job's communicators, the largest first.
std::vector<Communicator> communicators(const job::Job& job);

// How some members differ from the others.
enum class How {
  differs,  // different collectives, within the range that both reached
  uneven,   // the same ones, but it or the others closed after fewer
  stopped,  // the same ones, but it got less far, and it or the others never closed
};

// Members that are alike, and diverge from others that are alike, too.
struct Parting {
  How how = How::differs;
  Members who{};
  std::shared_ptr<const Members> others{};  // one for all that are compared with them
  // Collectives [0, same) are known to be the same. The first that differs is in [same, end).
  std::uint64_t same = 0;
  std::uint64_t end = 0;
};

struct Agreement {
  std::vector<Parting> partings{};
  std::uint64_t collectives = 0;  // the number that the largest group issued
  std::uint64_t fewest = 0;       // that a rank issued
  std::uint64_t most = 0;
  bool all_there = false;  // every rank was seen, with its counts
};
Agreement agreement_of(const Communicator& communicator);

}  // namespace tprof::check
