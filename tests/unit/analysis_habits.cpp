// why/: what habits of the program are worth, of facts that are given.
#include "catch2.h"
#include "report/words.h"
#include "why/causes.h"

using namespace tprof;

namespace {

constexpr double kMs = 1e6;
constexpr std::uint64_t kSteps = 10;

// In each step two copies to the device and two from it, for which it stands still so long; and
// all-gathers that come late by 4 ms, as the host has only just called them.
struct Costs {
  double to_device = 0;  // ms of a step; 0: it is not told
  double to_host = 0;
};

// Returns what `look` finds in steps of 100 ms, of which the host does not need so much.
template <typename Look>
diagnose::Findings found_by(why::RankFacts facts, double spare_ms, Look&& look) {
  const job::Job job;
  const read::Process rank;
  why::Times times;
  times.ranks = {&rank};
  facts.steps = kSteps;
  times.facts = {std::move(facts)};
  std::vector<std::size_t> steps;
  for (std::size_t s = 0; s < kSteps; ++s) {
    times.steps.push_back(static_cast<std::int64_t>(s));
    why::Cell cell;
    cell.length = 100 * kMs;
    cell.spare = static_cast<float>(spare_ms * kMs);
    times.cells.push_back(cell);
    steps.push_back(s);
  }
  const why::Transfers transfers;
  const why::WaitTable waits;
  const std::map<std::string, std::string, std::less<>> roles;
  const why::Evidence e{.job = job,
                        .times = times,
                        .steps = steps,
                        .transfers = transfers,
                        .waits = waits,
                        .roles = roles,
                        .step_ns = 100 * kMs};
  diagnose::Findings found;
  look(e, found);
  return found;
}

Costs costs_of(std::int64_t to_device_ms, std::int64_t to_host_ms, double spare_ms) {
  const auto copies = [](std::int64_t ms) {
    return why::Blocking{.steps = kSteps,
                         .calls = 2 * kSteps,
                         .bytes = 8 * kSteps,
                         .idle_ns = ms * 1'000'000 * std::int64_t{kSteps}};
  };
  why::RankFacts facts;
  facts.to_device = copies(to_device_ms);
  facts.to_host = copies(to_host_ms);
  facts.host_late_gather_ns = 4'000'000 * std::int64_t{kSteps};
  const auto found = found_by(std::move(facts), spare_ms, why::blocking_copies);
  Costs costs;
  for (const diagnose::Finding& f : found) {
    const double ms = static_cast<double>(*f.cost->ns_per_step) / kMs;
    (f.kind == diagnose::Kind::blocking_h2d ? costs.to_device : costs.to_host) = ms;
  }
  return costs;
}

}  // namespace

TEST_CASE("all-gathers that come late because of copies count once, by what the copies cost") {
  const Costs both = costs_of(3, 1, 50);
  CHECK(both.to_device == Approx(3 + 3));
  CHECK(both.to_host == Approx(1 + 1));
  const Costs one = costs_of(0, 2, 50);
  CHECK(one.to_device == 0);
  CHECK(one.to_host == Approx(2 + 4));
}

TEST_CASE("copies that make no device stand still are not why all-gathers come late") {
  const Costs none = costs_of(0, 0, 50);
  CHECK(none.to_device == 0);
  CHECK(none.to_host == 0);
}

TEST_CASE("copies cost no more than the host has to spare") {
  CHECK(costs_of(0, 10, 5).to_host == Approx(5));
}

TEST_CASE("what is exposed is told as it is, and costs what the hosts leave of it") {
  for (const double spare_ms : {50.0, 5.0}) {
    why::RankFacts facts;
    auto& gathers = facts.exposed[static_cast<std::size_t>(Bucket::ALLGATHER)];
    gathers.backward_ns = gathers.backward_transfer_ns = 20'000'000 * std::int64_t{kSteps};
    const auto found = found_by(std::move(facts), spare_ms, why::done_again);
    REQUIRE(found.size() == 1);
    const std::string text = report::sentence(found[0].text);
    CHECK(text.find("exposed, or hold up calls that are, for 20.0% of a step") != text.npos);
    CHECK((text.find(", 5.0% beyond what the hosts need") != text.npos) == (spare_ms == 5));
    CHECK(*found[0].cost->ns_per_step == Approx(std::min(20.0, spare_ms) * kMs));
  }
}
