// Whether all ranks of a communicator issued the same collectives, from the ledgers' numbers and
// signatures alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/names.h"
#include "job/jobs.h"

namespace tprof::diagnose {

// One rank of a communicator, as its process saw it.
struct Member {
  const read::Process* process = nullptr;
  const read::Comm* comm = nullptr;
  const read::Collectives* done = nullptr;  // null: no ledger, or its counts are lower bounds only

  std::uint64_t count() const { return done->count; }
  bool did(std::uint64_t seq) const { return done != nullptr && done->count > seq; }
  std::optional<std::int64_t> rank() const { return process->header.rank; }  // in the world
  bool closed() const { return process->end == read::End::closed; }
};
using Members = std::vector<const Member*>;

inline Processes processes_of(const auto& members) {  // of pointers to them, or of themselves
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
inline std::string names_of(const Members& members) {
  return names_of(processes_of(members));
}

// A communicator, joined over the ranks of a job.
struct Communicator {
  std::string id;
  std::string name;  // empty: none
  std::int64_t nranks = 0;
  std::vector<Member> members;  // in the order of their ranks
};

// The members that did this collective.
Members who_did(const Communicator& communicator, std::uint64_t seq);

// In the order of their size, the largest first.
std::vector<Communicator> communicators(const job::Job& job);

// What tells some members from the others.
enum class How {
  differs,  // not the same collectives, within what both did
  fewer,    // the same ones, but it closed after fewer than the others, who closed too
  more,     // it closed, or went on, after more than those that closed
  stopped,  // the same ones, but it did not get as far: it, or the others, never closed
};

// Members that part from the others of their communicator.
struct Parting {
  How how = How::differs;
  std::vector<Members> groups{};  // each alike among themselves
  Members others{};               // alike among themselves
  // Collectives [0, same) are known to be the same, one of [same, end) is the first that is not.
  std::uint64_t same = 0;
  std::uint64_t end = 0;

  bool tie() const { return groups[0].size() == others.size(); }  // neither is the majority
  Members members() const;                                        // of all groups
  Parting of_group(const Members& group) const;                   // of this one alone
};

struct Agreement {
  std::vector<Parting> partings;
  std::uint64_t collectives = 0;  // of most members
  bool all_there = false;         // every rank of it was seen, with its counts
};
Agreement agreement_of(const Communicator& communicator);

}  // namespace tprof::diagnose
