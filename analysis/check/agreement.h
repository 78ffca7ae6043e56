// Checks by the ledgers' counts and signatures alone that all ranks of a communicator issued the
// same collectives.
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

inline Processes processes_of(const auto& members) {  // takes members or pointers to members
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

// A communicator with its members among the ranks of a job.
struct Communicator {
  std::string id;
  std::string name;  // empty: none
  std::int64_t nranks = 0;
  std::vector<Member> members;  // in the order of their ranks
  std::uint64_t sends = 0;      // of all members, from their ledgers
  std::uint64_t receives = 0;
};

// Returns the member with this rank in the communicator; null: unknown.
const Member* member_of(const Communicator& communicator, std::int64_t rank);

// Returns the members that issued this collective.
Members who_did(const Communicator& communicator, std::uint64_t seq);
// Returns the members that are known to have issued this number of collectives.
Members who_issued(const Communicator& communicator, std::uint64_t collectives);

// Returns the job's communicators, the largest first.
std::vector<Communicator> communicators(const job::Job& job);

// How some members differ from the others.
enum class DiffersBy {
  differs,  // different collectives, within the range that both reached
  uneven,   // the same ones, but one side closed after fewer
  stopped,  // the same ones, but it got less far, and one side never closed
};

// Members that did the same, and differ from others that did the same.
struct Disagreement {
  DiffersBy how = DiffersBy::differs;
  Members who{};
  std::shared_ptr<const Members> others{};  // shared by all disagreements with these others
  // Collectives [0, same) are known to be the same. The first difference is in [same, end).
  std::uint64_t same = 0;
  std::uint64_t end = 0;
};

struct Agreement {
  std::vector<Disagreement> disagreements{};
  std::uint64_t collectives = 0;  // issued by the largest group
  std::uint64_t fewest = 0;       // issued by a single rank
  std::uint64_t most = 0;
  bool all_there = false;  // every rank was seen and has counts
};
Agreement agreement_of(const Communicator& communicator);

}  // namespace tprof::check
