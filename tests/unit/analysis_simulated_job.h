// A job whose clocks are known. In true time, ranks compute, come to a collective, wait for the
// last one and leave. Its traces have the times that the hosts' clocks showed. The tests of align/
// compare with the truth here, none of which is derived from those times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace tprof::test {

// A host's clock as a function of true time, in ns.
struct TrueClock {
  struct Change {
    double at = 0;  // true time
    double drift = 0;
    double step = 0;
  };
  double offset = 0;
  double drift = 0;               // 1e-6: a microsecond per second
  std::vector<Change> changes{};  // in order of time

  std::int64_t shows(double t) const {
    double shown = offset;
    double since = 0;
    double rate = drift;
    for (const Change& c : changes) {
      if (c.at > t) break;
      shown += (c.at - since) * rate + c.step;
      since = c.at;
      rate = c.drift;
    }
    return static_cast<std::int64_t>(t + shown + (t - since) * rate);
  }
};

enum class Shape { all, broadcast, reduce };

struct SimulatedJob {
  std::size_t hosts = 8;
  std::size_t ranks_per_host = 2;
  std::size_t collectives = 2000;
  double gap_ns = 30e6;       // computation between two collectives
  double skew_ns = 150e3;     // mean of a rank's extra computation
  double transfer_ns = 40e3;  // length of a collective once all have come
  double jitter_ns = 5e3;     // standard deviation of when ranks leave
  double offset_ns = 800e3;   // clocks are off by up to this
  double drift = 5e-6;        // and run wrong by up to this
  std::uint64_t seed = 1;
  std::vector<TrueClock> clocks{};                // one per host; empty: drawn at random
  std::vector<std::vector<std::size_t>> comms{};  // ranks of each; empty: one with all
  // How long a rank sleeps before a collective, beyond what it computes.
  std::function<double(std::size_t rank, std::size_t n)> sleeps{};
  std::function<Shape(std::size_t n)> shape{};

  struct Call {
    std::size_t rank = 0;
    double came = 0;  // true times
    double left = 0;
    std::int64_t start = 0;  // as its host's clock showed
    std::int64_t end = 0;
  };
  struct Collective {
    std::size_t comm = 0;
    std::size_t n = 0;  // its number on that communicator
    Shape shape = Shape::all;
    std::vector<Call> calls;  // the first is the root's
  };

  std::size_t host_of(std::size_t rank) const { return rank / ranks_per_host; }

  // Draws what was not given, then calls see(collective) for each in the order in which the job
  // issues them.
  template <typename See>
  void run(See&& see) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> sides(-1, 1);
    if (clocks.empty()) {
      for (std::size_t h = 0; h < hosts; ++h) {
        clocks.push_back({offset_ns * sides(random), drift * sides(random)});
      }
    }
    if (comms.empty()) {
      comms.emplace_back();
      for (std::size_t r = 0; r < hosts * ranks_per_host; ++r) comms[0].push_back(r);
    }
    std::exponential_distribution<double> exponential(1);
    std::vector<double> now(hosts * ranks_per_host, 1e9);
    std::vector<std::size_t> issued(comms.size());
    for (std::size_t n = 0; n < collectives; ++n) {
      Collective c;
      c.comm = n % comms.size();
      c.n = issued[c.comm]++;
      if (shape) c.shape = shape(n);
      double last = 0;
      for (const std::size_t rank : comms[c.comm]) {
        const double computed = gap_ns + skew_ns * exponential(random);
        const double came = now[rank] + computed + (sleeps ? sleeps(rank, n) : 0);
        last = std::max(last, came);
        c.calls.push_back({rank, came});
      }
      for (std::size_t i = 0; i < c.calls.size(); ++i) {
        Call& call = c.calls[i];
        const bool waits = c.shape == Shape::all || (c.shape == Shape::reduce && i == 0);
        const double behind = waits                         ? last
                              : c.shape == Shape::broadcast ? std::max(call.came, c.calls[0].came)
                                                            : call.came;
        call.left = behind + transfer_ns + jitter_ns * exponential(random);
        now[call.rank] = call.left;
        const TrueClock& clock = clocks[host_of(call.rank)];
        call.start = clock.shows(call.came);
        call.end = clock.shows(call.left);
      }
      see(c);
    }
  }
};

}  // namespace tprof::test
