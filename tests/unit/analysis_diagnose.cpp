// diagnose/: what the checks of whole jobs (tests/tool/test_check*.py) are made of.
#include <random>
#include <set>

#include "catch2.h"
#include "collect/intervals.h"
#include "diagnose/agreement.h"
#include "diagnose/names.h"

using namespace tprof;
using namespace tprof::diagnose;

TEST_CASE("intervals hold what was added, in whichever order it came") {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    std::set<std::uint64_t> expected;
    collect::Intervals seqs;
    std::uint64_t twice = 0;
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t n = random() % 150;
      if (!expected.insert(n).second) ++twice;
      seqs.add(n);
    }
    std::set<std::uint64_t> found;
    std::uint64_t last_end = 0;
    bool first = true;
    for (const auto& [begin, end] : seqs.parts()) {
      REQUIRE((first || begin > last_end));  // else they would be one
      first = false;
      last_end = end;
      for (std::uint64_t n = begin; n < end; ++n) found.insert(n);
    }
    REQUIRE(found == expected);
    REQUIRE(seqs.twice() == twice);
    REQUIRE(seqs.begin() == *expected.begin());
    REQUIRE(seqs.end() == *expected.rbegin() + 1);
    for (std::uint64_t n = 0; n < 160; ++n) {
      std::uint64_t until = n;
      while (expected.contains(until)) ++until;
      REQUIRE(seqs.covered_until(n) == until);
      const auto next = expected.lower_bound(n);
      REQUIRE(seqs.next(n) == (next == expected.end() ? std::nullopt : std::optional(*next)));
    }
  }
}

TEST_CASE("a file that is nothing but gaps is not kept in memory") {
  collect::Intervals seqs;
  for (std::uint64_t n = 0; n < 100'000; ++n) seqs.add(3 * n);
  CHECK(seqs.left_out());
  CHECK(seqs.parts().size() < 10'000);
}

namespace {

struct Rank {
  std::uint64_t count;
  read::Signature signature;
  std::vector<read::Signature> marks;
  bool closed = true;
};

// A communicator whose members' numbers are made up.
struct Made {
  explicit Made(const std::vector<Rank>& ranks) {
    processes.resize(ranks.size());
    c.nranks = static_cast<std::int64_t>(ranks.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      read::Process& p = processes[i];
      p.header.rank = static_cast<std::int64_t>(i);
      p.end = ranks[i].closed ? read::End::closed : read::End::recovered;
      read::Comm& comm = p.comms[1];
      comm.comm = 1;
      comm.nranks = c.nranks;
      comm.rank = *p.header.rank;
      p.ledger.emplace().collectives.push_back(
          {1, ranks[i].count, ranks[i].signature, ranks[i].marks});
      c.members.push_back({&p, &comm, &p.ledger->collectives[0]});
    }
  }
  std::vector<read::Process> processes;
  Communicator c;
};

}  // namespace

TEST_CASE("marks narrow a difference down to between two powers of two") {
  const Made made(
      {{5, 'x', {'a', 'b', 'c'}}, {5, 'x', {'a', 'b', 'c'}}, {5, 'y', {'a', 'b', 'd'}}});
  const Agreement a = agreement_of(made.c);
  REQUIRE(a.partings.size() == 1);
  CHECK(a.partings[0].how == How::differs);
  CHECK(a.partings[0].groups[0][0]->process->header.rank == 2);
  CHECK((a.partings[0].same == 2 && a.partings[0].end == 4));
}

TEST_CASE("behind the last mark the signature tells") {
  const Made made(
      {{7, 'x', {'a', 'b', 'c'}}, {7, 'y', {'a', 'b', 'c'}}, {7, 'x', {'a', 'b', 'c'}}});
  const Agreement a = agreement_of(made.c);
  REQUIRE(a.partings.size() == 1);
  CHECK(a.partings[0].groups[0][0]->process->header.rank == 1);
  CHECK((a.partings[0].same == 4 && a.partings[0].end == 7));
}

TEST_CASE("fewer collectives are a contradiction only where both sides closed") {
  const std::vector<read::Signature> marks = {'a', 'b', 'c'};
  const auto parting = [&](bool few, bool most) {
    const Made made({{6, 'x', marks, most}, {5, 'w', marks, few}, {6, 'x', marks, most}});
    const Agreement a = agreement_of(made.c);
    REQUIRE(a.partings.size() == 1);
    CHECK(a.partings[0].groups[0][0]->process->header.rank == 1);
    return a.partings[0].how;
  };
  CHECK(parting(true, true) == How::fewer);
  CHECK(parting(false, true) == How::stopped);
  CHECK(parting(true, false) == How::stopped);
  CHECK(parting(false, false) == How::stopped);
}

TEST_CASE("one rank that went on after most had closed did more") {
  const std::vector<read::Signature> marks = {'a', 'b', 'c'};
  const Made made({{6, 'x', marks}, {7, 'z', marks}, {6, 'x', marks}, {6, 'x', marks}});
  const Agreement a = agreement_of(made.c);
  REQUIRE(a.partings.size() == 1);
  CHECK(a.partings[0].how == How::more);
}

TEST_CASE("many ranks are counted, not listed") {
  std::vector<read::Process> processes(1000);
  std::vector<const read::Process*> odd;
  for (std::size_t i = 1; i < processes.size(); i += 2) {
    processes[i].header.rank = static_cast<std::int64_t>(i);
    odd.push_back(&processes[i]);
  }
  const std::string names = names_of(odd);
  CHECK(names.starts_with("ranks 1,3,5,"));
  CHECK(names.ends_with(",... (500 ranks)"));
  CHECK(names.size() < 130);
}
