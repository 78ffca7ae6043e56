#include "why/wait_table.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "check/agreement.h"
#include "interpose/format/ledger.h"
#include "job/hosts.h"
#include "tables/totals.h"
#include "why/numbers.h"

namespace tprof::why {
namespace {

constexpr std::size_t kMostSteps = 4096;  // that get their own figures
constexpr std::size_t kMostKinds = 4096;  // per rank

// A row with the transfer times of its meetings.
struct Growing : WaitRow {
  std::vector<double> times{};

  WaitOfRank* of(const run::Rank& rank, std::uint32_t comm_number) {
    const std::int64_t on_comm = read::comm_of(*rank.process, comm_number)->rank;
    auto mine = std::ranges::lower_bound(of_ranks, on_comm, {}, &WaitOfRank::on_comm);
    while (mine != of_ranks.end() && mine->on_comm == on_comm && mine->rank != rank.process) ++mine;
    return mine == of_ranks.end() || mine->rank != rank.process ? nullptr : &*mine;
  }
};
using Kinds = std::map<std::tuple<std::string_view, Bucket, std::int64_t>, Growing>;

// Adds the calls of one rank. A group of messages has no single kind.
void add_calls(const run::Rank& rank, std::uint64_t stride, Kinds& rows) {
  struct OfKind {
    Spent all{};
    Spent in_steps{};
    std::map<std::int64_t, Spent> steps{};
  };
  std::map<std::tuple<std::uint32_t, Bucket, std::int64_t>, OfKind> kinds;
  const run::Calls& c = rank.calls;
  for (std::size_t i = 0; i < c.size(); ++i) {
    if (!c.is[i].met || c.is[i].mixed || (c.is[i].messages && c.made[i] != 1)) continue;
    if (kinds.size() >= kMostKinds) break;
    const std::int64_t wait = c.all_came_ns[i] - c.came_ns[i];
    const Spent spent{1, wait, c.ended_ns[i] - c.all_came_ns[i]};
    OfKind& kind = kinds[{c.comm[i], c.bucket[i], bytes_class(c.bytes[i] / c.made[i])}];
    kind.all += spent;
    const run::Step* step = run::step_at(rank.steps, c.called_ns[i]);
    if (step == nullptr) continue;
    kind.in_steps += spent;
    if (static_cast<std::uint64_t>(step - rank.steps.data()) % stride == 0) {
      kind.steps[step->number] += spent;
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
    if (WaitOfRank* mine = row->second.of(rank, number)) mine->spent += kind.all;
  }
}

// Returns a row for each kind of call in the ledgers, with the ledgers' figures alone.
Kinds rows_by_ledgers(const job::Job& job, const steps::Found& found) {
  Kinds rows;
  const job::Hosts hosts(job);
  for (const check::Communicator& c : check::communicators(job)) {
    if (c.members.size() < 2) continue;
    const text::Ranks names = check::ranks_of(check::processes_of(c.members));
    std::set<std::size_t> on;
    for (const check::Member& m : c.members) on.insert(hosts.of(*m.process));
    for (const check::Member& m : c.members) {
      const auto steps = found.ranks.find(m.process);
      for (const read::Row& row : read::rows_of(*m.process)) {
        if (is_copy(row.bucket) || row.comm != m.comm->comm || row.amounts.bytes == 0) continue;
        WaitRow& to = rows[{m.comm->id, row.bucket, row.bytes_class}];
        if (to.of_ranks.empty()) {
          to.comm = c.id;
          to.nranks = c.nranks;
          to.bucket = row.bucket;
          to.size_class = row.bytes_class;
          to.ranks = names;
          to.hosts = on.size();
        }
        to.calls = read::saturated_sum(to.calls, row.amounts.calls);
        to.bytes = read::saturated_sum(to.bytes, row.amounts.bytes);
        if (!to.of_ranks.empty() && to.of_ranks.back().rank == m.process) continue;
        to.of_ranks.push_back({.rank = m.process, .on_comm = m.comm->rank});
        if (steps != found.ranks.end()) to.rank_steps += steps->second.size();
      }
    }
  }
  return rows;
}

// Adds what each meeting tells: how long its transfer took, and who came last.
class Meetings {
 public:
  explicit Meetings(const run::Run& run) : run_(run) {
    for (const run::Rank& rank : run.ranks) seen_.emplace_back(rank.calls.size());
  }

  void add(std::span<const run::Row> met, Kinds& rows) {
    if (!counts(met)) return;
    const run::Row* last = met.data();
    const run::Row* before = nullptr;
    for (const run::Row& r : met.subspan(1)) {
      if (came_ns(r) > came_ns(*last)) {
        before = std::exchange(last, &r);
      } else if (before == nullptr || came_ns(r) > came_ns(*before)) {
        before = &r;
      }
    }
    const run::Calls& c = rank_of(met[0]).calls;
    const std::size_t one = met[0].row;
    const std::string_view comm = read::comm_of(*rank_of(met[0]).process, c.comm[one])->id;
    const auto row = rows.find({comm, c.bucket[one], bytes_class(c.bytes[one] / c.made[one])});
    if (row == rows.end()) return;
    const std::int64_t transfer_ns = std::max<std::int64_t>(end_ns(met) - came_ns(*last), 0);
    row->second.times.push_back(static_cast<double>(transfer_ns));
    ++row->second.meetings;
    const std::int64_t late = came_ns(*last) - came_ns(*before);
    if (static_cast<double>(late) <= run_.error_ns(rank_of(*last), rank_of(*before))) return;
    WaitOfRank* mine = row->second.of(rank_of(*last), rank_of(*last).calls.comm[last->row]);
    if (mine == nullptr) return;
    ++mine->last.times;
    mine->last.sum_ns += late;
    mine->last.most_ns = std::max(mine->last.most_ns, late);
  }

 private:
  const run::Rank& rank_of(const run::Row& r) const { return run_.ranks[r.rank]; }
  std::int64_t came_ns(const run::Row& r) const { return rank_of(r).calls.came_ns[r.row]; }

  // A group has one time for all its calls: it counts once, as its first call. A group of messages
  // does not count.
  bool counts(std::span<const run::Row> met) {
    bool all = true;
    for (const run::Row& r : met) {
      const run::Calls& c = rank_of(r).calls;
      const bool fresh = !seen_[r.rank][r.row];
      seen_[r.rank][r.row] = true;
      all = all && fresh && c.is[r.row].met && !c.is[r.row].mixed &&
            (c.made[r.row] == 1 || !c.is[r.row].messages);
    }
    return all;
  }

  // When a message was received, or a collective had ended on the first host (the mean of its
  // ranks).
  std::int64_t end_ns(std::span<const run::Row> rows) const {
    static const text::Kept kReceive("ncclRecv");
    std::vector<align::Passage> hosts;
    for (const run::Row& r : rows) {
      const run::Calls& c = rank_of(r).calls;
      if (c.is[r.row].messages && c.name[r.row] == kReceive) return c.ended_ns[r.row];
      align::add(hosts, rank_of(r).host, false, 0, true, c.ended_ns[r.row]);
    }
    return std::ranges::min(hosts, {}, &align::Passage::mean_end).mean_end;
  }

  const run::Run& run_;
  std::vector<std::vector<bool>> seen_{};
};

void finish(Growing& row, const Peak& peak) {
  row.usual_transfer_ns = std::llround(median(row.times));
  if (row.calls == 0 || row.usual_transfer_ns <= 0) return;
  const double bytes = static_cast<double>(row.bytes) / static_cast<double>(row.calls);
  row.busbw_GBps = bytes * tables::bus_factor(row.bucket, row.nranks) /
                   static_cast<double>(row.usual_transfer_ns);
  // A message only uses the links of its two ends.
  const double expected = row.bucket == Bucket::P2P ? 0 : peak.of(row.spans_hosts());
  if (expected > 0) row.peak_share = *row.busbw_GBps / expected;
}

}  // namespace

const WaitOfRank* WaitRow::most_often_last() const {
  const auto most = std::ranges::max_element(
      of_ranks, {}, [](const WaitOfRank& r) { return std::pair(r.last.times, r.last.sum_ns); });
  return most == of_ranks.end() || most->last.times == 0 ? nullptr : &*most;
}

WaitTable wait_table_of(const run::Run& run, const job::Job& job, const steps::Found& found,
                        const Peak& peak) {
  WaitTable table{.step_stride = found.steps.size() / kMostSteps + 1, .known = run.timed()};
  if (!table.known) return {};
  Kinds rows = rows_by_ledgers(job, found);
  for (const run::Rank& rank : run.ranks) add_calls(rank, table.step_stride, rows);
  Meetings meetings(run);
  for (std::size_t m = 0; m < run.meetings(); ++m) meetings.add(run.meeting(m), rows);
  for (auto& [key, row] : rows) {
    finish(row, peak);
    table.rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(table.rows, std::ranges::greater(),
                           [](const WaitRow& r) { return r.spent.wait_ns + r.spent.transfer_ns; });
  return table;
}

}  // namespace tprof::why
