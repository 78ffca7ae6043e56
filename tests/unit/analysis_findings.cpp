// Findings as values: they do not grow with the ranks.
#include <random>
#include <set>

#include "catch2.h"
#include "check/names.h"

using namespace tprof;

TEST_CASE("sets of ranks are what sets of numbers are") {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::int64_t> numbers[2];
    std::set<std::int64_t> expected;
    for (auto& some : numbers) {
      for (int i = 0; i < 30; ++i) some.push_back(random() % 60);
      expected.insert(some.begin(), some.end());
    }
    text::Ranks ranks(numbers[0]);
    ranks.add(text::Ranks(numbers[1]));
    CHECK(ranks.list() == std::vector<std::int64_t>(expected.begin(), expected.end()));
    CHECK(ranks.size() == expected.size());
    CHECK(ranks == text::Ranks({expected.begin(), expected.end()}));
    for (std::int64_t n = -1; n < 61; ++n) CHECK(ranks.contains(n) == expected.contains(n));
  }
}

TEST_CASE("who a finding is about does not grow with the number of processes") {
  std::vector<read::Process> processes(100'000);
  check::Processes all;
  for (read::Process& p : processes) all.push_back(&p);
  const check::Who without = check::Who(all);
  CHECK((without.count == 100'000 && without.no_ranks == 100'000));
  CHECK(without.some.size() < 20);
  CHECK(check::names_of(without).ends_with(" processes without a rank"));

  for (std::size_t i = 0; i < processes.size(); ++i) {
    processes[i].header.rank = static_cast<std::int64_t>(i);
  }
  const check::Who ranks = check::Who(all);
  CHECK(ranks.some.empty());
  CHECK(check::names_of(ranks) == "ranks 0-99999");
}

TEST_CASE("many ranks are counted, not listed") {
  std::vector<read::Process> processes(1000);
  std::vector<const read::Process*> odd;
  for (std::size_t i = 1; i < processes.size(); i += 2) {
    processes[i].header.rank = static_cast<std::int64_t>(i);
    odd.push_back(&processes[i]);
  }
  const std::string names = check::names_of(odd);
  CHECK(names.starts_with("ranks 1,3,5,"));
  CHECK(names.ends_with(",... (500 ranks)"));
  CHECK(names.size() < 130);
}
