// align/: how far the clocks that it finds are from the known clocks of a simulated job.
#include <algorithm>
#include <cmath>

#include "align/clocks.h"
#include "analysis_simulated_job.h"
#include "catch2.h"

using namespace tprof::align;
using tprof::test::Shape;
using tprof::test::SimulatedJob;
using tprof::test::TrueClock;

namespace {

// Returns a collective as the hosts saw it.
std::vector<Passage> passages(const SimulatedJob& job, const SimulatedJob::Collective& c) {
  std::vector<Passage> all;
  for (std::size_t i = 0; i < c.calls.size(); ++i) {
    const auto& call = c.calls[i];
    const std::size_t host = job.host_of(call.rank);
    auto p = std::ranges::find(all, host, &Passage::host);
    if (p == all.end()) p = all.insert(all.end(), Passage{.host = host});
    const bool root = i == 0;
    if (c.shape != Shape::broadcast || root) {
      p->last_start = p->awaited ? std::max(p->last_start, call.start) : call.start;
      p->awaited = true;
    }
    if (c.shape == Shape::all || root == (c.shape == Shape::reduce)) {
      p->mean_end = p->waits ? (p->mean_end + call.end) / 2 : call.end;
      p->first_end = p->waits ? std::min(p->first_end, call.end) : call.end;
      p->waits = true;
    }
  }
  std::ranges::sort(all, {}, &Passage::host);
  return all;
}

struct Found {
  Clocks clocks{{}};
  std::vector<double> errors{};  // of the ends of all calls, ns
  double beyond = 0;             // how far the worst one exceeds the claimed bound
  std::int64_t violation = 0;    // the largest

  double error(double quantile) const {
    std::vector<double> sorted = errors;
    std::ranges::sort(sorted);
    return sorted[static_cast<std::size_t>(quantile * static_cast<double>(sorted.size() - 1))];
  }
};

Found found_for(SimulatedJob job) {
  std::vector<SimulatedJob::Collective> all;
  ClockFit fit(job.hosts);
  job.run([&](const SimulatedJob::Collective& c) {
    fit.add(passages(job, c));
    all.push_back(c);
  });
  Found found{.clocks = fit.clocks()};
  const auto& hosts = found.clocks.hosts();
  for (const auto& c : all) {
    found.violation = std::max(found.violation, found.clocks.violation(passages(job, c)));
    for (const auto& call : c.calls) {
      const std::size_t host = job.host_of(call.rank);
      if (hosts[host].behind == host) continue;
      // In truth the clock that it is measured against showed this at that moment.
      const std::int64_t truth = job.clocks[hosts[host].group].shows(call.left);
      const auto error = static_cast<double>(found.clocks.aligned(host, call.end) - truth);
      found.errors.push_back(std::abs(error));
      found.beyond = std::max(found.beyond, std::abs(error) - hosts[host].at_most);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("clocks that are off and drift are found to a microsecond") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Found f = found_for({.seed = seed});
    INFO(seed << ": median " << f.error(0.5) << " 95% " << f.error(0.95) << " max " << f.error(1)
              << " bound " << f.clocks.hosts()[7].at_most);
    CHECK(f.error(0.5) < 1000);
    CHECK(f.error(1) < 3000);
    CHECK(f.violation == 0);
    CHECK(f.beyond <= 1);
  }
}

TEST_CASE("two collectives give what they prove, and no more is said") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Found f = found_for({.hosts = 2, .collectives = 2, .seed = seed});
    INFO(seed << ": max " << f.error(1) << " at most " << f.clocks.hosts()[1].at_most);
    CHECK(f.beyond <= 1);
    CHECK(f.violation == 0);
    CHECK(f.clocks.hosts()[1].at_most < 5e6);
  }
}

TEST_CASE("one collective gives a bound") {
  const Found f = found_for({.hosts = 3, .collectives = 1});
  CHECK(f.beyond <= 1);
  CHECK(f.clocks.at_most(1, 2) < 1e7);
}

TEST_CASE("a clock that is set while the job runs is followed") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SimulatedJob job{.hosts = 3, .collectives = 3000, .seed = seed};
    const double length = 3000 * 30e6;
    job.clocks = {{0, 0}, {3e5, 2e-6, {{length / 3, 2e-6, 5e6}}}, {-2e5, -4e-6}};
    const Found f = found_for(job);
    INFO(seed << ": median " << f.error(0.5) << " 99% " << f.error(0.99) << " pieces "
              << f.clocks.hosts()[1].course.pieces.size());
    CHECK(f.clocks.hosts()[1].course.pieces.size() == 2);
    CHECK(f.clocks.hosts()[2].course.pieces.size() == 1);
    CHECK(f.error(0.5) < 1000);
    CHECK(f.error(1) < 3000);
    CHECK(f.violation == 0);
    CHECK(f.beyond <= 1);
  }
}

TEST_CASE("a drift that changes as NTP slews is followed") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SimulatedJob job{.hosts = 2, .collectives = 20000, .seed = seed};
    const double length = 20000 * 30e6;
    TrueClock wandering{1e5, 3e-6};
    for (int i = 1; i < 10; ++i) {
      wandering.changes.push_back({length * i / 10, (i % 3 - 1) * 8e-6, 0});
    }
    job.clocks = {{0, 0}, wandering};
    const Found f = found_for(job);
    INFO(seed << ": median " << f.error(0.5) << " 99% " << f.error(0.99) << " max " << f.error(1)
              << " pieces " << f.clocks.hosts()[1].course.pieces.size());
    CHECK(f.error(0.5) < 1000);
    CHECK(f.violation == 0);
    CHECK(f.beyond <= 1);
  }
}

TEST_CASE("hosts that share no communicator are aligned through others") {
  SimulatedJob job{.hosts = 4, .ranks_per_host = 1};
  job.comms = {{0, 1}, {1, 2}, {2, 3}};
  job.collectives = 6000;
  const Found f = found_for(job);
  INFO("median " << f.error(0.5) << " max " << f.error(1));
  CHECK(f.clocks.comparable(0, 3));
  CHECK(f.error(0.5) < 1000);
  CHECK(f.beyond <= 1);
  CHECK(f.violation == 0);
}

TEST_CASE("hosts that nothing connects are not compared") {
  SimulatedJob job{.hosts = 4, .ranks_per_host = 1};
  job.comms = {{0, 1}, {2, 3}};
  const Found f = found_for(job);
  CHECK(f.clocks.comparable(2, 3));
  CHECK_FALSE(f.clocks.comparable(1, 2));
  CHECK(f.clocks.at_most(1, 2) == kUnbounded);
}

TEST_CASE("a rank that sleeps is late, and does not bend the clocks") {
  SimulatedJob job{.hosts = 2, .ranks_per_host = 1, .collectives = 1000};
  job.sleeps = [](std::size_t rank, std::size_t) { return rank == 1 ? 20e6 : 0; };
  const Found f = found_for(job);
  INFO("median " << f.error(0.5) << " max " << f.error(1));
  CHECK(f.error(0.5) < 1000);
  CHECK(f.beyond <= 1);
}

TEST_CASE("of broadcasts and reductions only what they prove is taken") {
  SimulatedJob job{.hosts = 3, .ranks_per_host = 1, .collectives = 3000};
  job.shape = [](std::size_t n) {
    return n % 3 == 0 ? Shape::all : n % 3 == 1 ? Shape::broadcast : Shape::reduce;
  };
  const Found f = found_for(job);
  INFO("median " << f.error(0.5) << " max " << f.error(1));
  CHECK(f.error(0.5) < 1000);
  CHECK(f.beyond <= 1);
  CHECK(f.violation == 0);
}

TEST_CASE("collectives that were put together wrongly contradict the clocks") {
  SimulatedJob job{.hosts = 2, .ranks_per_host = 1, .collectives = 400};
  std::vector<std::vector<Passage>> seen;
  job.run([&](const SimulatedJob::Collective& c) { seen.push_back(passages(job, c)); });
  // The second host's numbers are off by one in a tenth of the calls.
  for (std::size_t n = 9; n + 1 < seen.size(); n += 10) seen[n][1] = seen[n + 1][1];
  ClockFit fit(2);
  for (const auto& collective : seen) fit.add(collective);
  const Clocks clocks = fit.clocks();
  CHECK(std::ranges::count_if(seen, [&](const auto& c) { return clocks.violation(c) > 0; }) >= 30);
}

TEST_CASE("ten million collectives are kept in little room") {
  ClockFit fit(2);
  const TrueClock other{4e5, 3e-6};
  std::mt19937 random(7);
  std::exponential_distribution<double> jitter(1 / 5e3);
  for (std::int64_t n = 0; n < 10'000'000; ++n) {
    const double came = 1e9 + 1e6 * static_cast<double>(n);
    const double left = came + 40e3;
    const auto end = static_cast<std::int64_t>(left + jitter(random));
    const auto end_there = other.shows(left + jitter(random));
    const auto start = static_cast<std::int64_t>(came);
    fit.add(std::array{Passage{0, true, start, true, end, end},
                       Passage{1, true, other.shows(came), true, end_there, end_there}});
  }
  const Clocks clocks = fit.clocks();
  CHECK(clocks.hosts()[1].course.points < 100'000);
  for (const double t : {2e9, 5e12, 9.9e12}) {
    const auto error = clocks.aligned(1, other.shows(t)) - static_cast<std::int64_t>(t);
    CHECK(std::abs(error) < 1000);
  }
}

TEST_CASE("the ranks of a host need not stand beside each other") {
  std::vector<Passage> hosts;
  for (const std::int64_t n : {1, 2, 3, 4, 5}) {
    add(hosts, n % 2 == 0 ? 1 : 0, true, 10 * n, true, 100 * n);
  }
  REQUIRE(hosts.size() == 2);
  CHECK(hosts[0].mean_end == 300);  // of 100, 300 and 500
  CHECK(hosts[1].mean_end == 300);  // of 200 and 400
  CHECK(hosts[0].last_start == 50);
  CHECK(hosts[1].first_end == 200);
}
