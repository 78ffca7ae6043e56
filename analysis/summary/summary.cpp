#include "summary/summary.h"

#include <map>
#include <utility>

#include "check/ends.h"

namespace tprof::tables {
namespace {

void count_communicators(Summary& s) {
  s.comms = communicators(*s.job, s.ops);
  if (!s.only.of_calls()) return;
  // The ledgers' numbers of collectives are unfiltered.
  using Id = std::pair<std::string, std::int64_t>;
  std::map<Id, std::vector<std::uint64_t>> made;  // by each rank
  for (const read::Process* p : s.job->processes) {
    std::map<Id, std::uint64_t> by_rank;
    if (p->ledger) {
      for (const auto& [number, comm] : p->comms) by_rank[{comm.id, comm.nranks}];
    }
    each_row(s.lines->rows(*p), [&](const read::Row& row) {
      if (!row.comm || row.bucket == Bucket::P2P) return;
      const OpKey key = op_of(row, *p);
      by_rank[{key.comm_id, key.nranks}] += row.amounts.calls;
    });
    for (const auto& [id, calls] : by_rank) made[id].push_back(calls);
  }
  for (CommSummary& c : s.comms) {
    c.collectives = 0;
    c.fewest.reset();
    for (const std::uint64_t calls : made[{c.id, c.nranks}]) c.issued(calls);
  }
  std::erase_if(s.comms, [](const CommSummary& c) { return c.amounts.calls == 0; });
}

void count_ledgers(const job::Job& job, Summary& s) {
  for (const read::Process* p : job.processes) {
    const read::Rows& rows = s.lines->rows(*p);
    add(s.buckets, bucket_totals(rows));
    if (const auto& footer = (p - p->lane)->footer; footer && footer->own_timed_calls != 0) {
      const read::Amounts all = sum(bucket_totals(read::rows_of(*p)));
      s.self_in_calls_ns += static_cast<double>(all.calls - all.replayed) *
                            static_cast<double>(footer->own_ns) /
                            static_cast<double>(footer->own_timed_calls);
    }
    add_ops(s.ops, *p, rows);
    add_host_memory(s.host_memory, rows);
    add_phases(s.phases, rows);
    if (p->ledger && p->ledger->memory && !s.only.of_calls()) {
      s.memory.asked = true;
      for (const read::MemoryUse& use : *p->ledger->memory) s.memory.uses.push_back({p, use});
    }
    if (!p->footer || p->lane != 0) continue;
    for (const auto& [reason, n] : p->footer->dropped) {
      s.dropped = read::saturated_sum(s.dropped, n);
    }
    const std::int64_t ran_ns = check::known_until_ns(*p) - check::began_ns(*p);
    s.self_cost_ns = read::saturated_sum(s.self_cost_ns, p->footer->self_cost_ns);
    s.self_run_ns = read::saturated_sum(s.self_run_ns, read::not_below_0(ran_ns));
    if (s.only.of_calls()) continue;
    const read::Compute compute = p->footer->compute.value_or(read::Compute{});
    s.compute.busy_ns = read::saturated_sum(s.compute.busy_ns, compute.busy_ns);
    s.compute.window_ns = read::saturated_sum(s.compute.window_ns, compute.window_ns);
  }
}

}  // namespace

void each_rank(const Summary& s,
               const std::function<void(std::int64_t rank, const Buckets&)>& see) {
  auto next = s.job->processes.begin();  // by rank
  for (const std::int64_t rank : s.job->ranks) {
    Buckets all{};
    for (; next != s.job->processes.end() && (*next)->header.rank == rank; ++next) {
      add(all, bucket_totals(s.lines->rows(**next)));
    }
    see(rank, all);
  }
}

Summary summarise(const run::Lines& lines, const SummaryOptions& options) {
  const job::Job& job = lines.job();
  Summary s{.job = &job, .lines = lines, .peak = options.peak};
  const filter::Selection* asked = options.asked;
  if (asked != nullptr) {
    s.only = asked->words();
    s.only_steps = asked->filter().steps;
    s.notes = asked->notes();
  }
  count_ledgers(job, s);
  count_communicators(s);
  if (asked != nullptr && asked->found()) {
    s.found = *asked->found();
  } else if (options.steps || options.top != 0) {
    s.found = steps::find(lines);
  }
  if (options.read_lines && !s.only.of_calls()) s.object_gathers = object_gathers(lines);
  if (options.op_times) s.op_times = op_times(lines);
  if (options.top != 0) s.slowest = slowest_of(lines, options.top, s.found);
  if (options.histogram) {
    s.histogram = histogram_of(lines, *options.histogram, s.found, s.only_steps);
  }
  s.findings = options.findings ? *options.findings
                                : check::diagnose(job, lines.traces(),
                                                  {.asked = check::kSummary, .read_lines = false})
                                      .findings;
  s.complete = check::complete(job, s.findings);
  return s;
}

}  // namespace tprof::tables
