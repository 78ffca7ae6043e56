// A job whose steps are known to the millisecond, for unit tests of causes: every rank computes for
// 60 ms of a step of 100 ms, the rest is exposed, and its host needs 20 ms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "why/causes.h"

namespace tprof::test {

inline constexpr double kMs = 1e6;

struct WhyToy {
  std::vector<read::Process> processes;
  job::Job job{};
  why::Times times{};
  std::vector<std::size_t> steps;  // all count
  why::Transfers transfers{};
  why::WaitTable waits{};
  std::map<std::string, std::string, std::less<>> roles{};

  WhyToy(std::size_t ranks, std::size_t of_steps) : processes(ranks), steps(of_steps) {
    std::iota(steps.begin(), steps.end(), std::size_t{0});
    times.steps.resize(of_steps);
    std::iota(times.steps.begin(), times.steps.end(), std::int64_t{2});
    times.steps_of_run = of_steps;
    times.facts.resize(ranks);
    for (std::size_t r = 0; r < ranks; ++r) {
      processes[r].header.rank = static_cast<std::int64_t>(r);
      processes[r].header.host = "node" + std::to_string(r);
      times.ranks.push_back(&processes[r]);
      job.processes.push_back(&processes[r]);
    }
    times.cells.resize(
        ranks * of_steps,
        {.length = 100 * kMs, .compute = 60 * kMs, .exposed = 40 * kMs, .spare = 80 * kMs});
    times.least_exposed.resize(of_steps, 40 * kMs);
    times.usual_compute.resize(of_steps, 60 * kMs);
    times.usual_lead.resize(of_steps);
    times.usual_received.resize(of_steps);
  }
  WhyToy(const WhyToy&) = delete;  // `times` refers to it
  WhyToy& operator=(const WhyToy&) = delete;

  why::Cell& cell(std::size_t rank, std::size_t place) {
    return times.cells[rank * times.steps.size() + place];
  }
  void lengthen(std::size_t place, double ns) {
    for (std::size_t r = 0; r < processes.size(); ++r) cell(r, place).length = 100 * kMs + ns;
  }
  // A rank computes for longer, and all wait for it if it is not as fast as that elsewhere.
  void slow(std::size_t rank, std::size_t place, double ns = 20 * kMs) {
    for (std::size_t r = 0; r < processes.size(); ++r) {
      why::Cell& c = cell(r, place);
      if (c.length > 100 * kMs) continue;  // by another one
      c.length = 100 * kMs + ns;
      c.spare = 80 * kMs + ns;
      c.exposed += ns;
      c.missing = ns;
    }
    why::Cell& own = cell(rank, place);
    own.compute = 60 * kMs + ns;
    own.exposed = 40 * kMs;
    own.missing = 0;
  }

  why::Evidence evidence() const {
    return {.job = job,
            .times = times,
            .steps = steps,
            .transfers = transfers,
            .waits = waits,
            .roles = roles,
            .step_ns = why::mean_of(times).length};
  }
};

}  // namespace tprof::test
