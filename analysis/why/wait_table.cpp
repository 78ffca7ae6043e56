#include "why/wait_table.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "check/agreement.h"
#include "interpose/format/ledger.h"
#include "stats/totals.h"

namespace tprof::why {
namespace {

constexpr std::size_t kMostSteps = 4096;  // with figures of their own
constexpr std::size_t kMostKinds = 4096;  // of one rank

using Key = std::tuple<std::string, Bucket, std::int64_t>;
using Rows = std::map<Key, WaitRow>;

// Splits the calls of one rank. A group of messages is of no one kind.
void add_calls(const run::Rank& rank, std::uint64_t stride, Rows& rows) {
  struct OfKind {
    Spent all{};
    Spent in_steps{};
    std::map<std::int64_t, Spent> steps{};
  };
  std::map<std::tuple<std::uint32_t, Bucket, std::int64_t>, OfKind> kinds;
  const run::Calls& c = rank.calls;
  for (std::size_t i = 0; i < c.size(); ++i) {
    if (!c.met[i] || c.mixed[i] || (c.messages[i] && c.made[i] != 1)) continue;
    if (kinds.size() >= kMostKinds) break;
    const std::int64_t wait = c.all_came_ns[i] - c.came_ns[i];
    const Spent spent{1, wait, c.ended_ns[i] - c.all_came_ns[i]};
    OfKind& kind = kinds[{c.comm[i], c.bucket[i], bytes_class(c.bytes[i] / c.made[i])}];
    kind.all += spent;
    const auto next = std::ranges::upper_bound(rank.steps, c.called_ns[i], {}, &run::Step::from_ns);
    if (next == rank.steps.begin() || std::prev(next)->to_ns <= c.called_ns[i]) continue;
    kind.in_steps += spent;
    if (static_cast<std::uint64_t>(std::prev(next) - rank.steps.begin()) % stride == 0) {
      kind.steps[std::prev(next)->number] += spent;
    }
  }
  for (const auto& [key, kind] : kinds) {
    const auto& [number, bucket, size_class] = key;
    const read::Comm* comm = read::comm_of(*rank.process, number);
    const auto row = rows.find({comm->id, bucket, size_class});
    if (row == rows.end()) continue;
    row->second.spent += kind.all;
    row->second.in_steps += kind.in_steps;
    for (const auto& [step, spent] : kind.steps) row->second.of_steps[step] += spent;
    std::vector<WaitOfRank>& ranks = row->second.of_ranks;
    auto mine = std::ranges::lower_bound(ranks, comm->rank, {}, &WaitOfRank::on_comm);
    for (; mine != ranks.end() && mine->on_comm == comm->rank; ++mine) {
      if (mine->rank == rank.process) mine->spent += kind.all;
    }
  }
}

// A row for each kind of call that the ledgers have, with nothing but what they tell.
Rows rows_by_ledgers(const job::Job& job, const steps::Found& found) {
  Rows rows;
  for (const diagnose::Communicator& c : diagnose::communicators(job)) {
    if (c.members.size() < 2) continue;
    const text::Ranks names = diagnose::ranks_of(diagnose::processes_of(c.members));
    for (const diagnose::Member& m : c.members) {
      for (const read::Row& row : read::rows_of(*m.process)) {
        if (is_copy(row.bucket) || row.comm != m.comm->comm || row.amounts.bytes == 0) continue;
        WaitRow& to = rows[{c.id, row.bucket, row.bytes_class}];
        to.comm = c.id;
        to.nranks = c.nranks;
        to.bucket = row.bucket;
        to.size_class = row.bytes_class;
        to.ranks = names;
        to.calls = read::saturated_sum(to.calls, row.amounts.calls);
        to.bytes = read::saturated_sum(to.bytes, row.amounts.bytes);
        if (!to.of_ranks.empty() && to.of_ranks.back().rank == m.process) continue;
        to.of_ranks.push_back({.rank = m.process, .on_comm = m.comm->rank});
        const auto steps = found.ranks.find(m.process);
        if (steps != found.ranks.end()) to.rank_steps += steps->second.size();
      }
    }
  }
  return rows;
}

void add_meetings(const Transfers& transfers, const Peak& peak, Rows& rows) {
  for (const Transfer& t : transfers.all) {
    const auto at = rows.find({t.comm, t.bucket, t.size_class});
    if (at == rows.end()) continue;
    WaitRow& row = at->second;
    row.meetings = t.collectives;
    row.spans_hosts = t.hosts.size() > 1;
    row.usual_transfer_ns = t.usual_ns;
    for (WaitOfRank& rank : row.of_ranks) {
      if (const auto last = t.last.find(rank.rank); last != t.last.end()) rank.last = last->second;
    }
    if (row.calls == 0 || t.usual_ns <= 0) continue;
    const double bytes = static_cast<double>(row.bytes) / static_cast<double>(row.calls);
    row.busbw_GBps =
        bytes * stats::bus_factor(row.bucket, row.nranks) / static_cast<double>(t.usual_ns);
    // Which links a message takes is its ends' alone.
    const double expected = row.bucket == Bucket::P2P ? 0 : peak.of(row.spans_hosts);
    if (expected > 0) row.peak_share = *row.busbw_GBps / expected;
  }
}

}  // namespace

const WaitOfRank* WaitRow::most_often_last() const {
  const auto most = std::ranges::max_element(
      of_ranks, {}, [](const WaitOfRank& r) { return std::pair(r.last.times, r.last.sum_ns); });
  return most == of_ranks.end() || most->last.times == 0 ? nullptr : &*most;
}

WaitTable wait_table_of(const run::Run& run, const job::Job& job, const steps::Found& found,
                        const Transfers& transfers, const Peak& peak) {
  WaitTable table{.step_stride = found.steps.size() / kMostSteps + 1, .known = transfers.known};
  if (!table.known) return {};
  auto rows = rows_by_ledgers(job, found);
  for (const run::Rank& rank : run.ranks) add_calls(rank, table.step_stride, rows);
  add_meetings(transfers, peak, rows);
  for (auto& [key, row] : rows) table.rows.push_back(std::move(row));
  std::ranges::stable_sort(table.rows, std::ranges::greater(),
                           [](const WaitRow& r) { return r.spent.wait_ns + r.spent.transfer_ns; });
  return table;
}

}  // namespace tprof::why
