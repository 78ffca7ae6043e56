// Whether all ranks of a communicator issued the same collectives, from the ledgers' numbers and
// signatures alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/problem.h"
#include "job/jobs.h"

namespace tprof::diagnose {

// One rank of a communicator, as its process saw it.
struct Member {
  const read::Process* process = nullptr;
  const read::Comm* comm = nullptr;
  const read::Collectives* done = nullptr;  // null: no ledger, or its counts are lower bounds only

  std::uint64_t count() const { return done->count; }
  std::optional<std::int64_t> rank() const { return process->header.rank; }  // in the world
  bool closed() const { return process->end == read::End::closed; }
};

// A communicator, joined over the ranks of a job.
struct Communicator {
  std::string id;
  std::string name;  // empty: none
  std::int64_t nranks = 0;
  std::vector<Member> members;  // in the order of their ranks
};

// In the order of their size, the largest first.
std::vector<Communicator> communicators(const match::Job& job);

// What tells some members from the others.
enum class Parting {
  differs,  // not the same collectives, within what both did
  fewer,    // the same ones, but it closed after fewer than the others, who closed too
  more,     // it closed, or went on, after more than those that closed
  stopped,  // the same ones, but it did not get as far: it, or the others, never closed
};

using Members = std::vector<const Member*>;

struct Split {
  Parting parting = Parting::differs;
  std::vector<Members> groups{};  // that part from the others, each alike among themselves
  Members others{};               // alike among themselves
  bool tie = false;               // neither side is the majority
  // Collectives [0, same) are known to be the same, one of [same, end) is the first that is not.
  std::uint64_t same = 0;
  std::uint64_t end = 0;

  Members members() const;            // of all groups
  Split of(std::size_t group) const;  // of this one alone
};

struct Agreement {
  std::vector<Split> splits;
  std::uint64_t collectives = 0;  // of most members
  bool all_there = false;         // every rank of it was seen, with its counts

  bool cleared() const { return splits.empty(); }
};
Agreement agreement_of(const Communicator& communicator);

// What the ledger's rows tell of a split: "rank 3: 41 ncclAllGather of float32 ..., the others 42".
std::vector<std::string> row_evidence(const Split& split);

inline constexpr const char* kNextOfMismatch =
    "look for what decides in the program whether, in which order and with what this call is made: "
    "there something depends on the rank";

// The finding of a split that is a contradiction (any but `stopped`), without where it lies.
Problem mismatch_of(const Communicator& communicator, const Split& split);
std::string where(const Split& split);  // "they part at one of the collectives 32 to 63"

// All that the ledgers tell.
void mismatches(const match::Job& job, std::vector<Problem>& found);

}  // namespace tprof::diagnose
