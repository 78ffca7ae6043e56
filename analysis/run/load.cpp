#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "interpose/format/ledger.h"
#include "job/hosts.h"
#include "read/parallel.h"
#include "run/columns.h"

namespace tprof::run {
namespace {

double sum_ns(const Intervals& all) {
  double ns = 0;
  for (const Interval& i : all) ns += static_cast<double>(i.ns());
  return ns;
}

// Returns the union of `times` and the times of the rows that count.
template <typename Counts>
Intervals with_rows(Intervals times, const Calls& c, const Counts& counts) {
  for (std::size_t i = 0; i < c.size(); ++i) {
    if (counts(i)) times.push_back({c.came_ns[i], c.ended_ns[i]});
  }
  return joined(std::move(times));
}

// A device that may have computed is assumed to have computed as long in total as others: three
// quarters of the ranks compute no longer. On average half of such a time was computation
// (interpose/format/fields.md). The rest of it is the host's.
void find_work(std::vector<Rank>& ranks) {
  std::vector<double> computed;
  for (Rank& rank : ranks) {
    if (!rank.unsure.empty()) {
      const Calls& c = rank.calls;
      rank.unsure = without(rank.unsure, with_rows({}, c, [&](auto i) { return c.copies(i); }));
    }
    computed.push_back(sum_ns(rank.sure) + sum_ns(rank.unsure) / 2);
  }
  std::ranges::sort(computed);
  const double usual = computed.empty() ? 0 : computed[computed.size() - 1 - computed.size() / 4];
  for (Rank& rank : ranks) {
    if (rank.unsure.empty()) {
      rank.work = std::exchange(rank.sure, {});
      continue;
    }
    const double share =
        std::clamp((usual - sum_ns(rank.sure)) / std::max(1.0, sum_ns(rank.unsure)), 0.0, 1.0);
    Intervals taken = rank.unsure;
    for (Interval& i : taken) {
      i.to_ns = i.from_ns + static_cast<std::int64_t>(share * static_cast<double>(i.ns()));
    }
    rank.work = either(rank.sure, taken);
  }
}

// Aligns the hosts' clocks by the collectives that cross hosts, and by messages too if `messages`.
align::Clocks clocks_of(const Run& run, std::size_t hosts, bool messages) {
  align::ClockFit fit(hosts);
  std::vector<align::Passage> passages;
  for (std::size_t m = 0; m < run.meetings(); ++m) {
    passages.clear();
    for (const Row& r : run.meeting(m)) {
      const Rank& rank = run.ranks[r.rank];
      const Calls& c = rank.calls;
      if (c.is[r.row].messages ? !messages : !all_wait(c.bucket[r.row])) continue;
      align::add(passages, rank.host, true, c.came_ns[r.row], true, c.ended_ns[r.row]);
    }
    if (passages.size() > 1) fit.add(passages);
  }
  return fit.clocks();
}

bool all_comparable(const align::Clocks& clocks) {
  return std::ranges::all_of(clocks.hosts(), [](const auto& host) { return host.group == 0; });
}

template <typename Move>
void move_times(Rank& rank, const Move& move) {
  Calls& c = rank.calls;
  for (Step& step : rank.steps) {
    step.from_ns = move(step.from_ns);
    step.to_ns = move(step.to_ns);
  }
  for (auto* column : {&c.came_ns, &c.ended_ns, &c.called_ns, &c.all_came_ns}) {
    for (std::int64_t& t : *column) t = move(t);
  }
  for (Intervals* all : {&rank.sure, &rank.unsure, &rank.followed}) {
    for (Interval& i : *all) i = {move(i.from_ns), move(i.to_ns)};
  }
  for (std::vector<Copy>* all : {&rank.loads, &rank.reads}) {
    for (Copy& copy : *all) copy.called_ns = move(copy.called_ns);
  }
  for (Blocked& b : rank.blocked) b.host = {move(b.host.from_ns), move(b.host.to_ns)};
}

// Rows with equal keys meet.
using Meeting = std::pair<MeetingKey, Row>;

// Sorts the rows of all ranks by meeting. Replaces the ranks' own communicator numbers by common
// ones.
std::vector<Meeting> meetings_of(std::vector<Rank>& ranks, std::vector<Columns::MeetingKeys> each,
                                 std::vector<std::size_t>& on_comm) {
  std::map<std::string, std::uint32_t, std::less<>> ids;
  std::vector<Meeting> all;
  std::size_t rows = 0;
  for (const Columns::MeetingKeys& met : each) rows += met.size();
  all.reserve(rows);
  for (std::uint32_t r = 0; r < ranks.size(); ++r) {
    std::set<std::uint32_t> comms;
    for (auto [meets, row] : std::exchange(each[r], {})) {
      const std::string& id = ranks[r].process->comms.at(meets.comm).id;
      meets.comm = ids.try_emplace(id, static_cast<std::uint32_t>(ids.size())).first->second;
      if (meets.from < 0) comms.insert(meets.comm);
      all.emplace_back(meets, Row{r, row});
    }
    on_comm.resize(ids.size());
    for (const std::uint32_t comm : comms) ++on_comm[comm];
  }
  std::ranges::sort(all, {}, [](const Meeting& m) {
    return std::tuple(m.first.name(), !m.first.sends, m.second.rank, m.second.row);
  });
  return all;
}

// Finds out which meetings are certain. Once ranks have called different things on a communicator,
// equal numbers no longer mean the same collective.
class CertainMeetings {
 public:
  CertainMeetings(Run& run, const std::vector<std::size_t>& on_comm)
      : run_(run), on_comm_(on_comm) {}

  void see(std::span<const Meeting> meeting, std::span<const Row> rows) {
    const MeetingKey& meets = meeting.front().first;
    const bool met = meets.from < 0 ? all_came(meets, rows) : both_came(meeting);
    for (const Row& r : rows) {
      if (!met) run_.ranks[r.rank].calls.is[r.row].met = false;
    }
  }

 private:
  bool comparable(const Row& a, const Row& b) const {
    return run_.clocks.comparable(run_.ranks[a.rank].host, run_.ranks[b.rank].host);
  }
  bool all_came(const MeetingKey& meets, std::span<const Row> rows) {
    const auto kind = [&](const Row& r) {
      const Calls& c = run_.ranks[r.rank].calls;
      return std::pair(c.bucket[r.row], bytes_class(c.bytes[r.row] / c.made[r.row]));
    };
    if (differ_on_ != meets.comm) {
      const bool same =
          std::ranges::all_of(rows, [&](const Row& r) { return kind(r) == kind(rows.front()); });
      if (!same) differ_on_ = meets.comm;
    }
    return differ_on_ != meets.comm && rows.size() > 1 && rows.size() == on_comm_[meets.comm] &&
           std::ranges::all_of(rows, [&](const Row& r) { return comparable(r, rows.front()); });
  }
  // A receive that ended before the send came belongs to another message.
  bool both_came(std::span<const Meeting> ends) const {
    if (ends.size() != 2 || ends[0].first.sends == ends[1].first.sends) return false;
    const Row& from = ends[ends[0].first.sends ? 0 : 1].second;
    const Row& to = ends[ends[0].first.sends ? 1 : 0].second;
    if (from.rank == to.rank || !comparable(from, to)) return false;
    const Rank& sender = run_.ranks[from.rank];
    const Rank& receiver = run_.ranks[to.rank];
    const std::int64_t early = sender.calls.came_ns[from.row] - receiver.calls.ended_ns[to.row];
    return static_cast<double>(early) <= run_.error_ns(sender, receiver);
  }

  Run& run_;
  const std::vector<std::size_t>& on_comm_;
  std::uint32_t differ_on_ = UINT32_MAX;
};

void find_last_to_come(Run& run) {
  std::vector<Row> by_coming;
  for (std::size_t m = 0; m < run.meetings(); ++m) {
    each_of_meeting(run, run.meeting(m), by_coming, [&](const Row& mine, std::size_t n) {
      if (n == 0) return;
      const Row& before = by_coming[n - 1];
      Calls& c = run.ranks[mine.rank].calls;
      std::int64_t& last = c.all_came_ns[mine.row];
      const std::int64_t came = run.ranks[before.rank].calls.came_ns[before.row];
      last = std::max(last, std::min(came, c.ended_ns[mine.row] - 1));
    });
  }
}

}  // namespace

Intervals busy_of(const Rank& rank, bool copies) {
  const Calls& c = rank.calls;
  return with_rows(rank.work, c,
                   [&](std::size_t i) { return copies || c.comm[i] != Calls::kNoComm; });
}

std::vector<std::size_t> by_call(const Calls& calls) {
  std::vector<std::size_t> rows(calls.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  std::ranges::stable_sort(rows, {}, [&](std::size_t i) { return calls.called_ns[i]; });
  return rows;
}

bool Run::timed() const {
  const auto calls = [](const Rank& rank) {
    return std::ranges::any_of(rank.calls.comm, [](auto comm) { return comm != Calls::kNoComm; });
  };
  return std::ranges::count_if(ranks, calls) >= 2;
}

Run load(const Lines& from, Steps steps, const Parts& only) {
  const job::Job& job = from.job();
  const job::Hosts hosts(job);
  Run run;
  for (const job::Host& host : hosts.all()) run.slack_ns.push_back(host.slack_ns);
  std::vector<Columns::MeetingKeys> meets;
  std::map<const read::Process*, std::size_t> places;
  run.ranks.reserve(job.processes.size());
  for (const read::Process* p : job.processes) {
    if (!p->header.rank) continue;
    places.emplace(p, run.ranks.size());
    run.ranks.push_back({.process = p, .host = hosts.of(*p)});
    if (auto its = steps.extract(p)) run.ranks.back().steps = std::move(its.mapped());
  }
  meets.resize(run.ranks.size());
  from.each(
      [&](const read::Process& p) {
        const auto place = places.find(&p);
        std::optional<Columns> of;
        if (place == places.end()) return of;
        const auto part = only.find(&p);
        of.emplace(run.ranks[place->second],
                   part == only.end() ? std::nullopt : std::optional(part->second));
        return of;
      },
      [&](Columns& of) {
        const std::size_t place = places.at(of.rank().process);
        run.ranks[place] = std::move(of.rank());
        meets[place] = std::move(of.meets());
      });
  const auto each_rank = [&](const auto& f) {
    read::in_parallel(run.ranks.size(), [&](std::size_t r) { f(run.ranks[r]); });
  };
  each_rank([&](Rank& rank) {
    move_times(rank, [&](std::int64_t t) { return hosts.on_axis(*rank.process, t); });
  });
  std::vector<std::size_t> on_comm;  // how many ranks call collectives on each communicator
  const std::vector<Meeting> all = meetings_of(run.ranks, std::move(meets), on_comm);
  run.members.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    run.members.push_back(all[i].second);
    if (i + 1 != all.size() && all[i + 1].first == all[i].first) continue;
    run.first.push_back(static_cast<std::uint32_t>(i + 1));
  }
  run.clocks = clocks_of(run, hosts.all().size(), false);
  if (!all_comparable(run.clocks)) run.clocks = clocks_of(run, hosts.all().size(), true);
  each_rank([&](Rank& rank) {
    move_times(rank, [&](std::int64_t t) { return run.clocks.aligned(rank.host, t); });
  });
  find_work(run.ranks);
  CertainMeetings who(run, on_comm);
  for (std::size_t m = 0; m < run.meetings(); ++m) {
    const std::span<const Row> rows = run.meeting(m);
    who.see(std::span(all).subspan(run.first[m], rows.size()), rows);
  }
  find_last_to_come(run);
  return run;
}

}  // namespace tprof::run
