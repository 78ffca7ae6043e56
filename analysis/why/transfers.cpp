#include "why/transfers.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "check/agreement.h"
#include "interpose/format/ledger.h"
#include "job/hosts.h"
#include "why/numbers.h"

namespace tprof::why {
namespace {

struct Sums {
  Transfer of;
  std::vector<double> times{};  // every `stride`-th
  std::size_t stride = 1;

  void add(std::int64_t transfer_ns) {
    constexpr std::size_t kMostTimes = 4096;
    if (of.collectives++ % stride == 0) times.push_back(static_cast<double>(transfer_ns));
    if (times.size() < kMostTimes) return;
    for (std::size_t i = 0; i < kMostTimes / 2; ++i) times[i] = times[2 * i];
    times.resize(kMostTimes / 2);
    stride *= 2;
  }
  void came_last(const read::Process* rank, std::int64_t late_ns) {
    CameLast& last = of.last[rank];
    ++last.times;
    last.sum_ns += late_ns;
    last.most_ns = std::max(last.most_ns, late_ns);
  }
};

// Puts the figures of a communicator's ledgers to its transfers.
void name(const job::Job& job, const std::map<std::string_view, std::vector<Sums*>>& by_comm) {
  const job::Hosts hosts(job);
  for (const diagnose::Communicator& c : diagnose::communicators(job)) {
    const auto sums = by_comm.find(c.id);
    if (sums == by_comm.end()) continue;
    std::set<std::size_t> on;
    for (const diagnose::Member& m : c.members) on.insert(hosts.of(*m.process));
    const text::Ranks members = diagnose::ranks_of(diagnose::processes_of(c.members));
    for (Sums* sum : sums->second) {
      Transfer& t = sum->of;
      t.comm = c.id;
      t.ranks = members;
      for (const std::size_t h : on) t.hosts.push_back(hosts.all()[h].name);
      const diagnose::Member& one = c.members.front();
      for (const read::Row& row : read::rows_of(*one.process)) {
        if (row.comm != one.comm->comm || row.bucket != t.bucket ||
            row.bytes_class != t.size_class) {
          continue;
        }
        t.calls += row.amounts.calls;
        t.bytes += row.amounts.bytes;
      }
    }
  }
}

// Adds what is known of each meeting to those of its communicator, kind and size.
class Finder {
 public:
  explicit Finder(const run::Run& run) : run_(run) {
    for (const run::Rank& rank : run.ranks) seen_.emplace_back(rank.calls.size());
    for (std::size_t m = 0; m < run.meetings(); ++m) see(run.meeting(m));
  }

  Transfers named(const job::Job& job) {
    std::map<std::string_view, std::vector<Sums*>> by_comm;
    for (auto& [key, sum] : sums_) by_comm[std::get<0>(key)].push_back(&sum);
    name(job, by_comm);
    Transfers found{.known = run_.timed()};
    for (auto& [key, sum] : sums_) {
      sum.of.usual_ns = std::llround(median(sum.times));
      sum.of.quick_ns = std::llround(quantile(sum.times, 0.1));
      found.all.push_back(std::move(sum.of));
    }
    return found;
  }

 private:
  const run::Rank& rank_of(const run::Row& r) const { return run_.ranks[r.rank]; }
  std::int64_t came_ns(const run::Row& r) const { return rank_of(r).calls.came_ns[r.row]; }

  // A group's time is that of all its calls: it counts as the first of them, of messages as none.
  bool counts(std::span<const run::Row> rows) {
    bool all = true;
    for (const run::Row& r : rows) {
      const run::Calls& c = rank_of(r).calls;
      const bool fresh = !seen_[r.rank][r.row];
      seen_[r.rank][r.row] = true;
      all = all && fresh && c.met[r.row] && !c.mixed[r.row] &&
            (c.made[r.row] == 1 || !c.messages[r.row]);
    }
    return all;
  }

  void see(std::span<const run::Row> rows) {
    if (!counts(rows)) return;
    const run::Row* last = &rows[0];
    const run::Row* before = nullptr;
    for (const run::Row& r : rows.subspan(1)) {
      if (came_ns(r) > came_ns(*last)) {
        before = std::exchange(last, &r);
      } else if (before == nullptr || came_ns(r) > came_ns(*before)) {
        before = &r;
      }
    }
    const run::Rank& one = rank_of(rows[0]);
    const run::Calls& c = one.calls;
    const std::size_t row = rows[0].row;
    const std::string_view comm = read::comm_of(*one.process, c.comm[row])->id;
    const std::int64_t size = bytes_class(c.bytes[row] / c.made[row]);
    const auto [at, fresh] = sums_.try_emplace(std::tuple(comm, c.bucket[row], size));
    Sums& sum = at->second;
    if (fresh) sum.of = {.bucket = c.bucket[row], .size_class = size};
    sum.add(std::max<std::int64_t>(end_ns(rows) - came_ns(*last), 0));
    const std::int64_t late = came_ns(*last) - came_ns(*before);
    if (static_cast<double>(late) <= run_.error_ns(rank_of(*last), rank_of(*before))) return;
    sum.came_last(rank_of(*last).process, late);
  }

  // When a message was received, or a collective had ended on the first host: the mean of its
  // ranks.
  std::int64_t end_ns(std::span<const run::Row> rows) const {
    static const text::Kept kReceive("ncclRecv");
    struct Ends {
      std::size_t host;
      std::int64_t first_ns;
      std::int64_t beyond_ns = 0;
      std::int64_t ranks = 0;
    };
    std::vector<Ends> hosts;
    for (const run::Row& r : rows) {
      const run::Calls& c = rank_of(r).calls;
      const std::int64_t ended = c.ended_ns[r.row];
      if (c.messages[r.row] && c.name[r.row] == kReceive) return ended;
      auto of = std::ranges::find(hosts, rank_of(r).host, &Ends::host);
      if (of == hosts.end()) of = hosts.insert(of, {rank_of(r).host, ended});
      of->beyond_ns += ended - of->first_ns;
      ++of->ranks;
    }
    std::int64_t end = std::numeric_limits<std::int64_t>::max();
    for (const Ends& of : hosts) end = std::min(end, of.first_ns + of.beyond_ns / of.ranks);
    return end;
  }

  const run::Run& run_;
  std::vector<std::vector<bool>> seen_{};
  std::map<std::tuple<std::string_view, Bucket, std::int64_t>, Sums> sums_{};
};

}  // namespace

Transfers transfers_of(const run::Run& run, const job::Job& job) {
  return Finder(run).named(job);
}

}  // namespace tprof::why
