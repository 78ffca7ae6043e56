// diagnose/: what the checks of whole jobs (tests/tool/test_check*.py) are made of.
#include <random>
#include <set>

#include "catch2.h"
#include "diagnose/intervals.h"
#include "diagnose/names.h"

using namespace tprof;
using namespace tprof::diagnose;

TEST_CASE("intervals hold what was added, in whichever order it came") {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    std::set<std::uint64_t> expected;
    diagnose::Intervals seqs;
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
  diagnose::Intervals seqs;
  for (std::uint64_t n = 0; n < 100'000; ++n) seqs.add(3 * n);
  CHECK(seqs.left_out());
  CHECK(seqs.parts().size() < 10'000);
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
