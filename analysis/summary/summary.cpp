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

// Each file is read once for what needs no steps, and once more for what does.
void read_lines(const job::Job& job, const read::Traces& traces, const SummaryOptions& options,
                Summary& s) {
  const bool of_calls = s.only.of_calls();
  collect::Passes passes(job, traces, options.progress,
                         of_calls ? options.asked->chosen() : read::Chosen());
  const std::optional<StepList>& only = s.only_steps;
  const bool splits = options.phases && !of_calls;
  const bool knows_steps = options.asked != nullptr && options.asked->found();
  if (knows_steps) s.found = *options.asked->found();
  const auto want_times = [&] {
    if (options.op_times) want_op_times(passes, s.found, only, s.op_times);
    if (options.top != 0) want_slowest(passes, options.top, s.found, only, s.slowest);
    if (options.histogram) want_histogram(passes, *options.histogram, s.found, only, s.histogram);
  };
  const bool wants_steps = options.steps || options.top != 0 || options.lateness ||
                           options.layers || splits || options.waits;
  if (wants_steps && !knows_steps) steps::want(passes, s.found);
  if (options.read_lines && !of_calls) want_object_gathers(passes, s.object_gathers);
  if (options.lateness) diagnose::want_lateness(passes, s.lateness, options.arrivals);
  if (options.waits) why::want_transfers(passes, s.transfers);
  if (options.ranges) want_ranges(passes, s.ranges);
  if (options.sites) want_sites(passes, s.sites);
  if (options.with_lines) options.with_lines(passes, s);
  want_times();
  if (wants_steps) passes.keep_lines();
  passes.read();
  if (options.steps || only) {
    want_step_totals(passes, s.found, only.value_or(StepList{}), s.steps.emplace());
  }
  if (s.lateness) want_steps(passes, *s.lateness, s.found);
  if (splits) want_rest(passes, s.found, s.rest);
  if (options.waits) {
    why::want_wait_table(passes, s.found, s.transfers, options.peak, s.waits.emplace());
  }
  if (options.layers) {
    want_layers(passes, s.found, only.value_or(StepList{}), s.buckets, s.comms, s.layers.emplace());
  }
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
      add(all, bucket_totals(**next));
    }
    see(rank, all);
  }
}

Summary summarise(const job::Job& job, const read::Traces& traces, const SummaryOptions& options) {
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
  read_lines(job, traces, options, s);
  s.findings = options.findings
                   ? *options.findings
                   : diagnose::diagnose(job, traces,
                                        {.asked = diagnose::kSummary,
                                         .whole_job = options.whole_job && s.only.ranks.empty(),
                                         .read_lines = false})
                         .findings;
  s.complete = diagnose::complete(job, s.findings);
  return s;
}

}  // namespace tprof::stats
