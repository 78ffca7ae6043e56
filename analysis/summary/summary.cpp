#include "summary/summary.h"

#include <algorithm>

#include "diagnose/ends.h"
#include "stats/roles.h"
#include "summary/late_steps.h"

namespace tprof::stats {
namespace {

std::vector<CommSummary> communicators(const job::Job& job, const Ops& ops) {
  std::map<std::pair<std::string, std::int64_t>, CommSummary> found;
  for (const read::Process* p : job.processes) {
    for (const auto& [number, comm] : p->comms) {
      CommSummary& c = found[{comm.id, comm.nranks}];
      c.id = comm.id;
      c.nranks = comm.nranks;
      if (comm.name) c.name = *comm.name;
      const auto parent = p->comms.find(comm.parent.value_or(-1));
      if (parent != p->comms.end()) c.parent = parent->second.id;
      if (p->header.rank) c.ranks.push_back(*p->header.rank);
      std::uint64_t issued = 0;
      for (const read::Collectives& all : read::collectives_of(*p)) {
        if (all.comm == number) issued = read::saturated_sum(issued, all.count);
      }
      c.collectives = std::max(c.collectives, issued);
    }
  }
  for (const auto& [key, amounts] : ops) {
    const auto c = found.find({key.comm_id, key.nranks});
    if (c != found.end()) c->second.amounts += amounts;
  }
  std::vector<CommSummary> all;
  for (auto& [id, c] : found) {
    std::ranges::sort(c.ranks);
    c.ranks.erase(std::unique(c.ranks.begin(), c.ranks.end()), c.ranks.end());
    all.push_back(std::move(c));
  }
  std::ranges::stable_sort(all, std::ranges::greater(), [](const CommSummary& c) {
    return std::pair(c.nranks, c.amounts.bytes);
  });
  return all;
}

void count_communicators(Summary& s) {
  s.comms = communicators(*s.job, s.ops);
  find_roles(*s.job, s.comms);
}

// Puts the figures of the steps that were asked for in place of those of the whole job.
void only_these(Summary& s) {
  s.ops = s.steps->ops;
  s.host_memory = s.steps->host_memory;
  s.buckets = s.steps->buckets;
  s.phases = {};  // event lines do not say them
  s.phases[static_cast<std::size_t>(Phase::unknown)] = s.buckets;
  count_communicators(s);
}

void count_ledgers(const job::Job& job, Summary& s) {
  for (const read::Process* p : job.processes) {
    add(s.buckets, bucket_totals(*p));
    add_ops(s.ops, *p);
    add_host_memory(s.host_memory, *p);
    add_phases(s.phases, *p);
    if (!p->footer || p->lane != 0) continue;
    for (const auto& [reason, n] : p->footer->dropped) {
      s.dropped = read::saturated_sum(s.dropped, n);
    }
    // A merged trace has one base for all, and the footer each process's own.
    const std::int64_t began_ns = p->footer->base_time_ns.value_or(p->header.base_time_ns);
    const std::int64_t ran_ns = diagnose::known_until_ns(*p) - began_ns;
    s.self_cost_ns = read::saturated_sum(s.self_cost_ns, p->footer->self_cost_ns);
    s.self_run_ns = read::saturated_sum(
        s.self_run_ns, static_cast<std::uint64_t>(std::max<std::int64_t>(ran_ns, 0)));
    const read::Compute compute = p->footer->compute.value_or(read::Compute{});
    s.compute.busy_ns = read::saturated_sum(s.compute.busy_ns, compute.busy_ns);
    s.compute.window_ns = read::saturated_sum(s.compute.window_ns, compute.window_ns);
  }
}

// Each file is read once for what needs no steps, and once more for what does; a third time where a
// histogram, or the slowest calls by their device's times, are of some steps only.
void read_lines(const job::Job& job, const read::Traces& traces, const SummaryOptions& options,
                Summary& s) {
  collect::Passes passes(job, traces, options.progress);
  const std::optional<StepRange>& only = options.only_steps;
  const bool splits = options.phases && !only;
  const auto of_calls = [&] {
    if (options.op_times) want_op_times(passes, s.found, only, s.op_times);
    if (options.top != 0) want_slowest(passes, options.top, s.found, only, s.slowest);
    if (options.histogram) want_histogram(passes, *options.histogram, s.found, only, s.histogram);
  };
  const bool wants_steps = options.steps || only || options.top != 0 || options.lateness ||
                           options.layers || splits || options.waits;
  if (wants_steps) steps::want(passes, s.found);
  if (options.read_lines) want_object_gathers(passes, s.object_gathers);
  if (options.lateness) diagnose::want_lateness(passes, s.lateness, options.arrivals);
  if (options.waits) why::want_transfers(passes, s.transfers);
  if (options.ranges) want_ranges(passes, s.ranges);
  if (options.sites) want_sites(passes, s.sites);
  if (options.with_lines) options.with_lines(passes, s);
  if (!only) of_calls();
  passes.read();
  if (options.steps || only) {
    want_step_totals(passes, s.found, only.value_or(StepRange{}), s.steps.emplace());
  }
  if (s.lateness) want_steps(passes, *s.lateness, s.found);
  if (splits) want_rest(passes, s.found, s.rest);
  if (options.waits) {
    why::want_wait_table(passes, s.found, s.transfers, options.peak, s.waits.emplace());
  }
  if (options.layers) {
    const Buckets& totals = only ? s.steps->buckets : s.buckets;
    want_layers(passes, s.found, only.value_or(StepRange{}), totals, s.comms, s.layers.emplace());
  }
  if (only) of_calls();
  if (options.with_steps) options.with_steps(passes, s);
  while (passes.read()) {
  }
}

}  // namespace

void each_rank(const Summary& s,
               const std::function<void(std::int64_t rank, const Buckets&)>& see) {
  auto next = s.job->processes.begin();  // by rank
  for (const std::int64_t rank : s.job->ranks) {
    Buckets all{};
    for (; next != s.job->processes.end() && (*next)->header.rank == rank; ++next) {
      if (!s.only_steps) add(all, bucket_totals(**next));
    }
    if (s.only_steps && s.steps->per_rank.contains(rank)) all = s.steps->per_rank.at(rank);
    see(rank, all);
  }
}

Summary summarise(const job::Job& job, const read::Traces& traces, const SummaryOptions& options) {
  Summary s;
  s.job = &job;
  s.only_steps = options.only_steps;
  count_ledgers(job, s);
  s.memory = memory_of(job);
  count_communicators(s);
  read_lines(job, traces, options, s);
  if (s.only_steps) only_these(s);
  s.findings =
      diagnose::diagnose(
          job, traces,
          {.asked = diagnose::kSummary, .whole_job = options.whole_job, .read_lines = false})
          .findings;
  s.complete = diagnose::complete(job, s.findings);
  return s;
}

}  // namespace tprof::stats
