#include "diagnose/lateness.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "diagnose/last_two.h"

namespace tprof::diagnose {
namespace {

constexpr std::size_t kWorst = 10;

// A time in which a communicator's others waited for a rank.
struct Waited {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  std::int64_t own_from_ns = 0;  // since then it was not behind values that the rank had read
};

// How far a communicator's last rank was behind, collective after collective, and why.
//
// Hosts run ahead of their devices. One that reads a value waits until its device is there, and is
// as far behind the others from then on, though nobody has waited for it. The lag beyond its wait
// is its own. But if the wait was most of what it lags, its device was behind its host
// whatever that had done before, and so nobody had waited for that either.
struct Lag {
  const read::Process* rank = nullptr;
  std::int64_t read_ns = 0;   // of it, behind values
  std::size_t explained = 0;  // how many of the rank's times of waiting these explain

  void reads(std::int64_t ns, std::int64_t lag_ns, std::vector<Waited>& late) {
    if (ns < (lag_ns - read_ns) / 2) {
      read_ns += ns;
      return;
    }
    read_ns = lag_ns;
    for (; explained < late.size(); ++explained) {
      late[explained].own_from_ns = late[explained].to_ns;
    }
  }
};

// Returns how long they last together, from there on: what several share counts once.
std::int64_t length_together(std::vector<Waited>& all, std::int64_t Waited::*from) {
  std::ranges::sort(all, {}, from);
  std::int64_t ns = 0;
  std::int64_t until = std::numeric_limits<std::int64_t>::min();
  for (const Waited& w : all) {
    if (w.to_ns <= until) continue;
    ns += w.to_ns - std::max(w.*from, until);
    until = w.to_ns;
  }
  return ns;
}

class Counter {
 public:
  Counter(const Meetings& meetings, const HostClocks& clocks, const ArrivalReader& reader)
      : meetings_(meetings), clocks_(clocks.clocks), reader_(reader) {
    if (reader_.clocks) reader_.clocks(clocks);
    found_.on_device = meetings.on_device();
    found_.stride = meetings.stride();
    found_.untimed = meetings.untimed();
  }

  void see(const Meeting& m) {
    if (m.parts[0].rooted) {
      ++found_.rooted;
      return;
    }
    ++found_.collectives;
    bool whole = true;
    bool any = false;
    const auto look = [&](std::size_t from, std::size_t to) {
      const Compared compared = compare(m, from, to);
      whole = whole && compared != Compared::lines_missing;
      any = any || compared == Compared::yes;
    };
    if (comparable(m.comm)) {
      look(0, m.parts.size());
    } else {
      found_.across_hosts = false;
      for (std::size_t i = 0; i < m.parts.size(); ++i) look(i, i + 1);
    }
    found_.compared += whole && any ? 1 : 0;
  }

  Lateness result() && {
    for (const auto& [comm, compared] : compared_) {
      for (const MetComm::Member& m : comm->members) {
        if (m.has_lines) ranks_[m.process].figures.collectives += compared[m.host];
      }
    }
    for (auto& [process, rank] : ranks_) {
      std::vector<std::int64_t> late;
      for (const Waited& w : rank.late) late.push_back(w.to_ns - w.from_ns);
      LateRank& r = rank.figures;
      r.rank = process;
      r.last = late.size();
      std::tie(r.first_realtime_ns, r.last_realtime_ns) = rank.when;
      std::ranges::sort(late);
      for (const std::int64_t ns : late) r.sum_ns += ns;
      for (const Waited& w : rank.late) r.sum_read_ns += w.own_from_ns - w.from_ns;
      r.waited_ns = length_together(rank.late, &Waited::from_ns);
      r.waited_read_ns = r.waited_ns - length_together(rank.late, &Waited::own_from_ns);
      if (!late.empty()) {
        r.median_ns = late[(late.size() - 1) / 2];
        r.p99_ns = late[(late.size() - 1) * 99 / 100];
        r.max_ns = late.back();
      }
      found_.ranks.push_back(r);
    }
    std::ranges::stable_sort(found_.ranks, {}, [](const LateRank& r) {
      return std::pair(-r.sum_ns, r.rank->header.rank);
    });
    if (end_ > begin_) found_.span_ns = end_ - begin_;
    return std::move(found_);
  }

 private:
  struct Rank {
    LateRank figures;
    std::vector<Waited> late;
    std::pair<std::int64_t, std::int64_t> when;  // of the first and the last, CLOCK_REALTIME
  };

  bool comparable(const MetComm& comm) const {
    return std::ranges::all_of(comm.hosts, [&](std::size_t host) {
      return clocks_.at_most(comm.hosts[0], host) < align::kUnbounded;
    });
  }

  enum class Compared { yes, too_few, lines_missing };

  // Compares the ranks of hosts [from, to) of the communicator.
  Compared compare(const Meeting& m, std::size_t from, std::size_t to) {
    LastTwo two;  // among ranks whose times can be compared
    std::uint32_t read = 0;
    std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
    std::uint32_t came = 0;
    for (std::size_t i = from; i < to; ++i) {
      const HostPart& p = m.parts[i];
      // Some have no line of it: they may have come later.
      if (p.came != m.comm.expected[i]) return Compared::lines_missing;
      if (p.came == 0) continue;
      came += p.came;
      read += p.read;
      const std::size_t host = m.comm.hosts[i];
      const auto aligned = [&](std::int64_t t) { return clocks_.aligned(host, t); };
      first_ns = std::min(first_ns, aligned(p.first_start));
      two.take({aligned(p.last_start), i});
      if (p.came > 1) two.take({aligned(p.before_last), i});
    }
    if (came < 2) return Compared::too_few;
    const HostPart& part = m.parts[two.last.host];
    const read::Process* rank = m.comm.members[part.last].process;
    Rank& theirs = ranks_[rank];
    std::vector<Lag>& lags = lags_[&m.comm];
    lags.resize(m.parts.size());
    Lag& lag = lags[from];
    if (lag.rank != rank) lag = {rank, 0, theirs.late.size()};
    // If the others read as well, they waited as well.
    if (part.last_read_ns != 0 && 2 * (read - 1) < came - 1) {
      lag.reads(part.last_read_ns, two.late_ns(), theirs.late);
    }
    lag.read_ns = std::min(lag.read_ns, two.late_ns());
    const std::int64_t own_from_ns = two.before.at_ns + lag.read_ns;
    // Hosts run ahead of their devices. Whatever the other ranks have called since, their devices
    // wait in the collective before this one until its last rank has come. Without this, a rank
    // that is late once would be late to all that the others had called meanwhile.
    std::vector<Arrival>& arrived = arrived_[&m.comm];
    arrived.resize(m.parts.size());
    Arrival& previous = arrived[from];
    if (previous.at_ns > two.before.at_ns) two.before = previous;
    previous = two.last;
    begin_ = std::min(begin_, first_ns);
    end_ = std::max(end_, two.last.at_ns);
    std::vector<std::uint64_t>& compared = compared_[&m.comm];
    compared.resize(m.parts.size());
    for (std::size_t i = from; i < to; ++i) ++compared[i];
    const double at_most =
        error_ns(meetings_, clocks_, m.comm.hosts[two.last.host], m.comm.hosts[two.before.host]);
    found_.at_most_ns = std::max(found_.at_most_ns, at_most);
    if (static_cast<double>(two.late_ns()) <= at_most) return Compared::yes;
    const std::int64_t realtime_ns = meetings_.hosts().zero_ns() + part.last_start;
    auto& [first, latest] = theirs.when;
    first = theirs.late.empty() ? realtime_ns : std::min(first, realtime_ns);
    latest = theirs.late.empty() ? realtime_ns : std::max(latest, realtime_ns);
    theirs.late.push_back(
        {two.before.at_ns, two.last.at_ns, std::max(own_from_ns, two.before.at_ns)});
    if (own_from_ns == two.last.at_ns) lag.explained = theirs.late.size();
    keep_worst({.communicator = m.comm.id,
                .seq = m.seq,
                .bucket = part.bucket,
                .rank = rank,
                .late_ns = two.late_ns(),
                .spread_ns = two.last.at_ns - first_ns,
                .realtime_ns = realtime_ns});
    return Compared::yes;
  }

  void keep_worst(LateArrival arrival) {
    std::vector<LateArrival>& worst = found_.worst;
    const auto place = std::ranges::upper_bound(worst, arrival.late_ns, std::ranges::greater(),
                                                &LateArrival::late_ns);
    if (reader_.arrival) reader_.arrival(arrival);
    if (static_cast<std::size_t>(place - worst.begin()) == kWorst) return;
    worst.insert(place, std::move(arrival));
    if (worst.size() > kWorst) worst.pop_back();
  }

  const Meetings& meetings_;
  const align::Clocks& clocks_;
  const ArrivalReader& reader_;
  Lateness found_;
  std::map<const read::Process*, Rank> ranks_;
  std::map<const MetComm*, std::vector<std::uint64_t>> compared_;  // collectives, per host
  std::map<const MetComm*, std::vector<Arrival>> arrived_;  // indexed by the first host compared
  std::map<const MetComm*, std::vector<Lag>> lags_;         // the same
  std::int64_t begin_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t end_ = std::numeric_limits<std::int64_t>::min();
};

}  // namespace

Lateness lateness_of(const Meetings& meetings, const HostClocks& clocks,
                     const ArrivalReader& reader) {
  Counter counter(meetings, clocks, reader);
  meetings.each([&](const Meeting& m) { counter.see(m); });
  return std::move(counter).result();
}

}  // namespace tprof::diagnose
