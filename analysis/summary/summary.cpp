#include "summary/summary.h"

#include <algorithm>
#include <set>

#include "diagnose/ends.h"
#include "stats/roles.h"
#include "summary/late_steps.h"

namespace tprof::stats {
namespace {

// All calls of a communicator show what it is for.
void count_communicators(Summary& s, const filter::Selection* asked) {
  s.comms = communicators(*s.job, s.ops);
  if (asked == nullptr || !asked->words().of_calls()) return find_roles(*s.job, s.comms);
  std::map<std::pair<std::string, std::int64_t>, const CommSummary*> whole;
  for (const CommSummary& c : asked->comms()) whole[{c.id, c.nranks}] = &c;
  for (CommSummary& c : s.comms) {
    const auto known = whole.find({c.id, c.nranks});
    if (known == whole.end()) continue;
    c.role = known->second->role;
    c.role_guessed = known->second->role_guessed;
    c.collectives = 0;
    c.fewest.reset();
  }
  // The ledgers' own numbers of collectives are of all.
  for (const read::Process* p : s.job->processes) {
    std::map<std::pair<std::string, std::int64_t>, std::uint64_t> made;
    each_row(*p, [&](const read::Row& row) {
      if (!row.comm || row.bucket == Bucket::P2P) return;
      const OpKey key = op_of(row, *p);
      made[{key.comm_id, key.nranks}] += row.amounts.calls;
    });
    std::set<std::pair<std::string, std::int64_t>> seen;
    for (const auto& [number, comm] : p->comms) seen.emplace(comm.id, comm.nranks);
    for (CommSummary& c : s.comms) {
      const std::pair key(c.id, c.nranks);
      if (made.contains(key) || (p->ledger && seen.contains(key))) c.issued(made[key]);
    }
  }
  std::erase_if(s.comms, [](const CommSummary& c) { return c.amounts.calls == 0; });
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
    const std::int64_t ran_ns = diagnose::known_until_ns(*p) - diagnose::began_ns(*p);
    s.self_cost_ns = read::saturated_sum(s.self_cost_ns, p->footer->self_cost_ns);
    s.self_run_ns = read::saturated_sum(
        s.self_run_ns, static_cast<std::uint64_t>(std::max<std::int64_t>(ran_ns, 0)));
    if (s.only.of_calls()) continue;
    const read::Compute compute = p->footer->compute.value_or(read::Compute{});
    s.compute.busy_ns = read::saturated_sum(s.compute.busy_ns, compute.busy_ns);
    s.compute.window_ns = read::saturated_sum(s.compute.window_ns, compute.window_ns);
  }
}

void take_lines(const run::Lines& lines, const SummaryOptions& options, Summary& s) {
  const bool of_calls = s.only.of_calls();
  const std::optional<StepList>& only = s.only_steps;
  const bool splits = options.phases && !of_calls;
  if (options.asked != nullptr && options.asked->found()) {
    s.found = *options.asked->found();
  } else if (options.steps || options.top != 0 || options.lateness || options.layers || splits ||
             options.waits) {
    s.found = steps::find(lines);
  }
  auto meetings = options.meetings;
  if (meetings == nullptr && (options.lateness || options.waits)) {
    meetings = std::make_shared<const diagnose::Meetings>(lines);
  }
  if (options.read_lines && !of_calls) s.object_gathers = object_gathers(lines);
  if (options.lateness) {
    s.lateness =
        diagnose::lateness_of(*meetings, diagnose::host_clocks(*meetings), options.arrivals);
    put_in_steps(lines, s.found, *s.lateness);
  }
  if (options.waits) {
    s.transfers = why::transfers_of(lines, meetings);
    s.waits = why::wait_table_of(lines, s.found, s.transfers, options.peak);
  }
  if (options.ranges) s.ranges = range_totals(lines);
  if (options.sites) s.sites = site_totals(lines);
  if (options.op_times) s.op_times = op_times(lines, s.found, only);
  if (options.top != 0) s.slowest = slowest_of(lines, options.top, s.found, only);
  if (options.histogram) s.histogram = histogram_of(lines, *options.histogram, s.found, only);
  if (options.steps || only) s.steps = step_totals(lines, s.found, only.value_or(StepList{}));
  if (splits) s.rest = rest_of(lines, s.found);
  if (options.layers) {
    s.layers = layers_of(lines, s.found, only.value_or(StepList{}), s.buckets, s.comms);
  }
}

}  // namespace

void each_rank(const Summary& s,
               const std::function<void(std::int64_t rank, const Buckets&)>& see) {
  auto next = s.job->processes.begin();  // by rank
  for (const std::int64_t rank : s.job->ranks) {
    Buckets all{};
    for (; next != s.job->processes.end() && (*next)->header.rank == rank; ++next) {
      add(all, bucket_totals(**next));
    }
    see(rank, all);
  }
}

Summary summarise(const run::Lines& lines, const SummaryOptions& options) {
  const job::Job& job = lines.job();
  Summary s;
  s.job = &job;
  if (options.asked != nullptr) {
    s.only = options.asked->words();
    s.only_steps = options.asked->filter().steps;
    s.notes = options.asked->notes();
  }
  count_ledgers(job, s);
  if (!s.only.of_calls()) s.memory = memory_of(job);
  count_communicators(s, options.asked);
  take_lines(lines, options, s);
  s.findings = options.findings
                   ? *options.findings
                   : diagnose::diagnose(job, lines.traces(),
                                        {.asked = diagnose::kSummary,
                                         .whole_job = options.whole_job && s.only.ranks.empty(),
                                         .read_lines = false})
                         .findings;
  s.complete = diagnose::complete(job, s.findings);
  return s;
}

}  // namespace tprof::stats
