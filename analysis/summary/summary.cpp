#include "summary/summary.h"

#include <algorithm>
#include <set>

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

// Of all processes of the job, or nothing where one of them can't tell.
std::optional<read::Amounts> all_object_gathers(const job::Job& job, const read::Traces& traces) {
  const std::set<const read::Process*> ours(job.processes.begin(), job.processes.end());
  read::Amounts total;
  for (const read::Trace& trace : traces.traces) {
    std::vector<std::optional<read::Amounts>> gathers;
    for (std::size_t i = 0; i < trace.processes.size(); ++i) {
      if (!ours.contains(&trace.processes[i])) continue;
      if (gathers.empty()) gathers = object_gathers(trace);
      if (!gathers[i]) return std::nullopt;
      total += *gathers[i];
    }
  }
  return total;
}

void add(Buckets& to, const Buckets& more) {
  for (std::size_t b = 0; b < kBucketCount; ++b) to[b] += more[b];
}

// In place of what the ledgers tell of the whole job.
void only_these(Summary& s) {
  s.ops = s.steps->ops;
  s.host_memory = s.steps->host_memory;
  s.buckets = s.steps->buckets;
  s.phases = {};  // event lines do not say them
  s.phases[static_cast<std::size_t>(Phase::unknown)] = s.buckets;
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
  if (options.steps || options.only_steps) {
    s.steps = step_totals(job, traces, options.only_steps.value_or(StepRange{}));
  }
  if (options.only_steps) only_these(s);
  s.memory = memory_of(job);
  s.comms = communicators(job, s.ops);
  find_roles(job, s.comms);
  if (options.read_lines) s.object_gathers = all_object_gathers(job, traces);
  if (options.lateness) s.lateness = diagnose::lateness_of(job, traces);
  const bool splits = options.phases && !options.only_steps;
  if (options.top != 0 || options.lateness || options.layers || splits) {
    s.found = s.steps ? s.steps->found : steps::find(job, traces, [](std::size_t) {});
  }
  if (s.lateness) add_steps(*s.lateness, job, traces, s.found);
  if (options.top != 0) {
    s.slowest = slowest_calls(job, traces, options.top, s.found, options.only_steps);
  }
  const steps::Found& found = s.steps ? s.steps->found : s.found;
  if (options.op_times) s.op_times = op_times(job, traces, found, options.only_steps);
  if (options.histogram) {
    s.histogram = histogram(job, traces, *options.histogram, found, options.only_steps);
  }
  if (splits) s.rest = split_rest(job, traces, s.found);
  if (options.layers) {
    s.layers = find_layers(job, traces, s.found, options.only_steps.value_or(StepRange{}),
                           s.buckets, s.comms);
  }
  if (options.ranges) s.ranges = range_totals(job, traces);
  if (options.sites) s.sites = site_totals(job, traces);
  s.findings =
      diagnose::diagnose(
          job, traces,
          {.asked = diagnose::kSummary, .whole_job = options.whole_job, .read_lines = false})
          .findings;
  s.complete = diagnose::complete(job, s.findings);
  return s;
}

}  // namespace tprof::stats
