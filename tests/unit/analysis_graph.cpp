// graph/: jobs of a few calls whose times without a cause are known by hand.
#include "graph/graph.h"

#include "catch2.h"

using namespace tprof;
using graph::Graph;
using graph::Wait;

namespace {

constexpr std::int64_t kMs = 1'000'000;

// Adds a call that its host had made long before. Returns its row.
std::uint32_t call(run::Rank& rank, double came_ms, double ended_ms, std::uint16_t stream,
                   bool message = false) {
  run::Calls& c = rank.calls;
  c.came_ns.push_back(std::int64_t(came_ms * kMs));
  c.ended_ns.push_back(std::int64_t(ended_ms * kMs));
  c.called_ns.push_back(std::int64_t(c.size()));
  c.waited_ns.push_back(0);
  c.comm.push_back(1);
  c.stream.push_back(stream);
  c.is.push_back({.messages = message});
  c.name.emplace_back("ncclAllReduce");
  c.made.push_back(1);
  c.all_came_ns.push_back(c.came_ns.back());
  return static_cast<std::uint32_t>(c.size() - 1);
}
void work(run::Rank& rank, double from_ms, double to_ms) {
  rank.work.push_back({std::int64_t(from_ms * kMs), std::int64_t(to_ms * kMs)});
}
void meet(run::Run& run, std::vector<run::Row> rows) {
  run.members.insert(run.members.end(), rows.begin(), rows.end());
  run.first.push_back(static_cast<std::uint32_t>(run.members.size()));
  std::int64_t last = 0;
  for (const run::Row& r : rows) last = std::max(last, run.ranks[r.rank].calls.came_ns[r.row]);
  for (const run::Row& r : rows) run.ranks[r.rank].calls.all_came_ns[r.row] = last;
}

// The last moment, in ms, where the kernels of a rank take so many times as long.
double end_ms(const Graph& g, std::uint32_t rank = 0, double times = 1) {
  graph::Lags lags = g.lag_ns;
  for (graph::Node n = 0; n < g.size(); ++n) {
    for (std::uint32_t i = g.first[n]; i < g.first[n + 1]; ++i) {
      if (g.wait[i] == Wait::computes && g.rank[n] == rank) lags[i] *= times;
    }
  }
  const std::vector<double> at = replay(g, lags);
  return *std::max_element(at.begin(), at.end()) / kMs;
}

// Two ranks compute, all-reduce for 1 ms, and compute again. The second takes 10 ms for what the
// first does in 4.
run::Run all_reduce_between() {
  run::Run run;
  run.ranks.resize(2);
  work(run.ranks[0], 1, 5);
  work(run.ranks[1], 1, 11);
  const std::uint32_t a = call(run.ranks[0], 5, 12, 0);
  const std::uint32_t b = call(run.ranks[1], 11, 12, 0);
  meet(run, {{0, a}, {1, b}});
  work(run.ranks[0], 12, 14);
  work(run.ranks[1], 12, 14);
  return run;
}

}  // namespace

TEST_CASE("a replay without a change gives what was measured", "[graph]") {
  const Graph g = graph::graph_of(all_reduce_between());
  CHECK(g.order.size() == g.size());
  const std::vector<double> at = replay(g, g.lag_ns);
  for (graph::Node n = 0; n < g.size(); ++n) CHECK(at[n] == Approx(double(g.at_ns[n])));
}

TEST_CASE("who waits at a collective gains nothing, and who is waited for all of it", "[graph]") {
  const Graph g = graph::graph_of(all_reduce_between());
  CHECK(end_ms(g) == Approx(14));
  CHECK(end_ms(g, 0, 0.5) == Approx(14));
  // Its work before it takes 4 ms and behind it 0.8.
  CHECK(end_ms(g, 1, 0.4) == Approx(1 + 4 + 1 + 2));
}

TEST_CASE("a call that nothing but its queue explains does not wait for work beside it",
          "[graph]") {
  run::Run run;
  run.ranks.resize(1);
  work(run.ranks[0], 0, 20);  // beside two gathers of a prefetch
  call(run.ranks[0], 0, 9, 1);
  call(run.ranks[0], 9, 17, 1);
  CHECK(end_ms(graph::graph_of(run), 0, 0.1) == Approx(17));
}

TEST_CASE("idle time that no call explains is the host's, and stays", "[graph]") {
  run::Run run;
  run.ranks.resize(1);
  call(run.ranks[0], 0, 0.5, 1);
  work(run.ranks[0], 1, 5);
  work(run.ranks[0], 8, 10);  // its host had launched nothing until then
  CHECK(end_ms(graph::graph_of(run), 0, 0.5) == Approx(8 + 1));
}

TEST_CASE("a message that came when another had ended was not waited for", "[graph]") {
  run::Run run;
  run.ranks.resize(2);
  work(run.ranks[1], 0, 6);
  const std::uint32_t sent = call(run.ranks[0], 1, 2, 0, true);  // into a buffer
  const std::uint32_t received = call(run.ranks[1], 6, 7, 0, true);
  meet(run, {{0, sent}, {1, received}});
  const Graph g = graph::graph_of(run);
  CHECK(g.order.size() == g.size());
  CHECK(end_ms(g, 1, 0.5) == Approx(3 + 1));
}

// The gradients of a layer are there when an all-to-all behind its kernels has ended.
TEST_CASE("a call may wait for the end of another call, where work stands still", "[graph]") {
  run::Run run;
  run.ranks.resize(2);
  for (std::uint32_t r = 0; r < 2; ++r) {
    work(run.ranks[r], 0, r == 0 ? 4 : 10);
    const std::uint32_t exchange = call(run.ranks[r], r == 0 ? 4 : 10, 11, 0);
    CHECK(exchange == 0);
    call(run.ranks[r], 11, 14, 1);
  }
  meet(run, {{0, 0}, {1, 0}});
  meet(run, {{0, 1}, {1, 1}});
  CHECK(end_ms(graph::graph_of(run), 1, 0.4) == Approx(4 + 1 + 3));
}

// Rank 0 has computed in 4 ms what rank 1 needs 10 ms for. Its second reduction comes when the
// first has ended, for which it waits for rank 1: its own times do not tell that the reduction
// needs all 4 ms. Rank 1's do.
TEST_CASE("what a call needs is known from a rank that is seen to wait for its work", "[graph]") {
  run::Run run;
  run.ranks.resize(2);
  for (std::uint32_t step = 0; step < 3; ++step) {
    const double from = 11 * step;
    for (std::uint32_t r = 0; r < 2; ++r) {
      run::Rank& rank = run.ranks[r];
      const auto rows = std::int64_t(rank.calls.size());  // a host calls one in a nanosecond
      rank.steps.push_back({.number = step, .from_ns = rows + 1, .to_ns = rows + 3});
      work(rank, from, from + (r == 0 ? 4 : 10));
      call(rank, from + (r == 0 ? 2 : 5), from + 6, 1);
      call(rank, from + (r == 0 ? 6 : 10), from + 11, 1);
    }
    meet(run, {{0, 2 * step}, {1, 2 * step}});
    meet(run, {{0, 2 * step + 1}, {1, 2 * step + 1}});
  }
  CHECK(end_ms(graph::graph_of(run)) == Approx(33));
  // Nothing is known of the first step, in which rank 0's reduction comes when it can.
  CHECK(end_ms(graph::graph_of(run), 1, 0.2) == Approx(4 + 5 + 5));
}

// Each of two micro-batches ends with a call, for whose end the device stands. The host waited for
// the device, and called only then. Micro-batches take other shares of each step.
TEST_CASE("a call needs the work of its micro-batch, however long that is", "[graph]") {
  run::Run run;
  run.ranks.resize(1);
  run::Rank& rank = run.ranks[0];
  double now = 0;
  for (std::uint32_t step = 0; step < 8; ++step) {
    const double begin = now;
    for (const double takes : {step % 2 == 0 ? 2.0 : 8.0, step % 3 == 0 ? 8.0 : 2.0}) {
      work(rank, now, now + takes);
      const std::uint32_t row = call(rank, now + takes, now + takes + 1, 1);
      rank.calls.called_ns[row] = std::int64_t((now + takes) * kMs);
      rank.calls.is[row].at_once = true;
      now += takes + 1;
    }
    rank.steps.push_back(
        {.number = step, .from_ns = std::int64_t(begin * kMs), .to_ns = std::int64_t(now * kMs)});
  }
  const Graph g = graph::graph_of(run);
  for (std::size_t row = 4; row < rank.calls.size(); ++row) {
    const graph::Node came = g.came(0, row);
    for (std::uint32_t i = g.first[came]; i < g.first[came + 1]; ++i) {
      if (g.wait[i] == Wait::place) CHECK(g.at_ns[g.from[i]] == g.at_ns[came]);
    }
  }
}

TEST_CASE("work does not wait for a call that ends long behind it", "[graph]") {
  run::Run run;
  run.ranks.resize(1);
  work(run.ranks[0], 0, 4);
  call(run.ranks[0], 3, 9, 1);
  work(run.ranks[0], 5, 8);
  const Graph g = graph::graph_of(run);
  CHECK(std::ranges::count(g.wait, Wait::barrier) == 0);
}

TEST_CASE("other edges make other times, and no circle", "[graph]") {
  run::Run run;
  run.ranks.resize(1);
  work(run.ranks[0], 0, 4);
  call(run.ranks[0], 4, 6, 1);
  call(run.ranks[0], 6, 9, 2);  // of the same communicator
  const Graph g = graph::graph_of(run);
  graph::Lags lags = g.lag_ns;
  for (std::uint32_t i = g.first[g.came(0, 1)]; i < g.first[g.came(0, 1) + 1]; ++i) {
    if (g.from[i] == g.ended(0, 0)) lags[i] = graph::kNever;
  }
  const graph::Edge turned{g.ended(0, 1), g.came(0, 0), 0, Wait::turn};
  CHECK(graph::replay(g, lags, {turned}).size() == g.size());
  CHECK(graph::replay(g, g.lag_ns, {turned}).empty());
}
