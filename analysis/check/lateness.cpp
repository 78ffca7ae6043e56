#include "check/lateness.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "check/calls.h"
#include "check/diagnosis.h"
#include "check/names.h"
#include "interpose/format/line_kinds.h"
#include "read/told_lines.h"
#include "run/intervals.h"
#include "text/text.h"

namespace tprof::check {

namespace {

constexpr std::size_t kWorst = 10;
constexpr std::int64_t kBeforeAll = std::numeric_limits<std::int64_t>::min();

// A time during which the others of a communicator waited for a rank.
struct Waited {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  std::int64_t own_from_ns = 0;  // from here on, values that the rank read are no reason
};

// Follows how far a communicator's last rank is behind from collective to collective, and why.
//
// Hosts run ahead of their devices. A host that reads a value waits for its device, and stays that
// far behind the other hosts, though no device waited for it. Lag beyond that wait is the rank's
// own. But if the wait explains most of the lag, the device was behind its host in any case, so
// earlier lags of the host held up nobody either.
struct Lag {
  const read::Process* rank = nullptr;
  std::int64_t read_ns = 0;   // the part of the lag explained by reads
  std::size_t explained = 0;  // how many of the rank's entries in `late` reads explain

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

// When a rank came, on the common clock.
struct Arrived {
  std::int64_t at_ns = kBeforeAll;
  const Arrivals::Rank* rank = nullptr;
};

// The ranks of a communicator that are compared with each other.
struct Group {
  std::vector<const Arrivals::Rank*> ranks{};
  std::uint64_t compared = 0;
  Arrived before{};  // who came last to the previous collective
  Lag lag{};
};

// Returns the length of the union of these times, each beginning at `from`.
std::int64_t length_together(const std::vector<Waited>& all, std::int64_t Waited::*from) {
  run::Intervals times;
  for (const Waited& w : all) times.push_back({w.*from, w.to_ns});
  std::int64_t ns = 0;
  for (const run::Interval& i : run::joined(std::move(times))) ns += i.ns();
  return ns;
}

class Counter {
 public:
  explicit Counter(const Arrivals& arrivals) : arrivals_(arrivals) {
    found_.on_device = arrivals.on_device;
    found_.stride = arrivals.stride;
    found_.untimed = arrivals.untimed;
  }

  void see(const Arrivals::Comm& comm, std::size_t n) {
    if (std::ranges::any_of(comm.ranks, [&](const Arrivals::Rank& r) {
          return r.at(n) != nullptr && r.at(n)->rooted;
        })) {
      ++found_.rooted;
      return;
    }
    ++found_.collectives;
    const auto [at, fresh] = groups_.try_emplace(&comm);
    if (fresh) at->second = groups_of(comm);
    bool whole = true;
    bool any = false;
    for (Group& group : at->second) {
      // A rank without a line for it may have come later.
      const bool all = std::ranges::all_of(
          group.ranks, [&](const Arrivals::Rank* r) { return r->at(n) != nullptr; });
      whole = whole && all;
      if (!all || group.ranks.size() < 2) continue;
      compare(comm, n, group);
      any = true;
    }
    found_.compared += whole && any ? 1 : 0;
  }

  Lateness result() && {
    for (const auto& [comm, groups] : groups_) {
      for (const Group& group : groups) {
        for (const Arrivals::Rank* r : group.ranks) {
          ranks_[r->process].figures.collectives += group.compared;
        }
      }
    }
    for (auto& [process, rank] : ranks_) {
      std::vector<std::int64_t> late;
      LateRank& r = rank.figures;
      r.rank = process;
      r.last = rank.late.size();
      for (const Waited& w : rank.late) {
        late.push_back(w.to_ns - w.from_ns);
        r.sum_ns += late.back();
        r.sum_read_ns += w.own_from_ns - w.from_ns;
      }
      r.waited_ns = length_together(rank.late, &Waited::from_ns);
      r.waited_read_ns = r.waited_ns - length_together(rank.late, &Waited::own_from_ns);
      std::ranges::sort(late);
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
    found_.worst = found_.arrivals;
    std::ranges::stable_sort(found_.worst, std::ranges::greater(), &LateArrival::late_ns);
    if (found_.worst.size() > kWorst) found_.worst.resize(kWorst);
    if (end_ > begin_) found_.span_ns = end_ - begin_;
    return std::move(found_);
  }

 private:
  struct Rank {
    LateRank figures;
    std::vector<Waited> late;
  };

  // Returns all ranks with lines if their clocks can be compared; else those of each host.
  std::vector<Group> groups_of(const Arrivals::Comm& comm) {
    const auto& first = comm.ranks.front();
    const bool all = std::ranges::all_of(comm.ranks, [&](const Arrivals::Rank& r) {
      return arrivals_.clocks.at_most(first.host, r.host) < align::kUnbounded;
    });
    found_.across_hosts = found_.across_hosts && all;
    std::map<std::size_t, Group> of_host;
    for (const Arrivals::Rank& r : comm.ranks) {
      if (r.has_lines) of_host[all ? 0 : r.host].ranks.push_back(&r);
    }
    std::vector<Group> groups;
    for (auto& [host, group] : of_host) groups.push_back(std::move(group));
    return groups;
  }

  void compare(const Arrivals::Comm& comm, std::size_t n, Group& group) {
    Arrived last;
    Arrived before;
    std::size_t read = 0;
    std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
    for (const Arrivals::Rank* r : group.ranks) {
      const std::int64_t at_ns = arrivals_.clocks.aligned(r->host, r->came_ns[n]);
      first_ns = std::min(first_ns, at_ns);
      if (at_ns > last.at_ns) {
        before = std::exchange(last, {at_ns, r});
      } else if (at_ns > before.at_ns) {
        before = {at_ns, r};
      }
      read += !r->read_ns.empty() && r->read_ns[n] != 0 ? 1 : 0;
    }
    if (before.rank == nullptr) before = last;  // all came at the same time
    const std::int64_t last_read_ns = last.rank->read_ns.empty() ? 0 : last.rank->read_ns[n];
    const read::Process* process = last.rank->process;
    Rank& theirs = ranks_[process];
    Lag& lag = group.lag;
    std::int64_t late_ns = last.at_ns - before.at_ns;
    if (lag.rank != process) lag = {process, 0, theirs.late.size()};
    // If the others read values too, they waited too.
    if (last_read_ns != 0 && 2 * (read - 1) < group.ranks.size() - 1) {
      lag.reads(last_read_ns, late_ns, theirs.late);
    }
    lag.read_ns = std::min(lag.read_ns, late_ns);
    const std::int64_t own_from_ns = before.at_ns + lag.read_ns;
    // Whatever the other hosts have called since, their devices wait in the previous collective
    // until its last rank comes. Without this, a rank that was late once would count as late to
    // everything that the others called meanwhile.
    if (group.before.at_ns > before.at_ns) before = group.before;
    group.before = last;
    ++group.compared;
    late_ns = last.at_ns - before.at_ns;
    begin_ = std::min(begin_, first_ns);
    end_ = std::max(end_, last.at_ns);
    const double at_most = arrivals_.error_ns(last.rank->host, before.rank->host);
    found_.at_most_ns = std::max(found_.at_most_ns, at_most);
    if (static_cast<double>(late_ns) <= at_most) return;
    const std::int64_t realtime_ns = arrivals_.hosts.zero_ns() + last.rank->came_ns[n];
    LateRank& r = theirs.figures;
    if (theirs.late.empty()) r.first_realtime_ns = r.last_realtime_ns = realtime_ns;
    r.first_realtime_ns = std::min(r.first_realtime_ns, realtime_ns);
    r.last_realtime_ns = std::max(r.last_realtime_ns, realtime_ns);
    theirs.late.push_back({before.at_ns, last.at_ns, std::max(own_from_ns, before.at_ns)});
    if (own_from_ns == last.at_ns) lag.explained = theirs.late.size();
    const std::int64_t base_ns = arrivals_.hosts.on_axis(*process, 0);
    found_.arrivals.push_back({.communicator = comm.id,
                               .seq = n * arrivals_.stride,
                               .bucket = last.rank->at(n)->bucket,
                               .rank = process,
                               .late_ns = late_ns,
                               .spread_ns = last.at_ns - first_ns,
                               .called_ns = last.rank->called_ns[n] - base_ns,
                               .ts_ns = last.rank->came_ns[n] - base_ns,
                               .realtime_ns = realtime_ns});
  }

  const Arrivals& arrivals_;
  Lateness found_;
  std::map<const read::Process*, Rank> ranks_;
  std::map<const Arrivals::Comm*, std::vector<Group>> groups_;
  std::int64_t begin_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t end_ = kBeforeAll;
};

// Finds ranks that the others waited for, repeatedly or once for long.

constexpr std::int64_t kLeastNs = 1'000'000'000;  // in total for a rank
constexpr std::int64_t kLeastShare = 100;         // at least 1/100 of the time
constexpr std::int64_t kTimesTheOthers = 4;

// Leaves out the latest arrival, which may be a checkpoint and must not hide a rank that is late in
// every fifth step.
std::int64_t usually_late_ns(const LateRank& r) {
  return std::max<std::int64_t>(0, r.own_ns() - r.max_ns);
}

// In every job some rank comes last. It stands out if others waited for it far longer than for the
// median of the other ranks, and mostly not because it alone had read values. `i`: its index in
// `ranks`, which are in descending order of own lateness.
bool stands_out(std::size_t i, const std::vector<LateRank>& ranks, const Lateness& l) {
  const LateRank& r = ranks[i];
  if (r.own_ns() < kLeastNs || r.own_ns() < l.span_ns / kLeastShare) return false;
  if (ranks.size() == 1 || r.own_ns() < r.sum_read_ns) return false;
  const std::size_t middle = (ranks.size() - 1) / 2;  // the median of the others
  return r.own_ns() / kTimesTheOthers >= usually_late_ns(ranks[middle < i ? middle : middle + 1]);
}

// The steps of a rank that overlap a time.
struct StepsIn {
  const read::Process* rank;
  TimeRange time;
  std::optional<StepRange> steps{};
  bool known = true;  // their numbers ascend, and no line is damaged

  void metadata(const read::Line& line) try {
    if (!is_line(line.text, LineKind::step)) return;
    const auto step = read::parsed_line<read::StepLine>(line, rank->file);
    const std::int64_t zero = rank->header.base_time_ns;
    if (zero + step.to_ns <= time.from_ns || zero + step.from_ns > time.to_ns) return;
    known = known && (!steps || step.step > steps->last);
    steps = StepRange{steps ? steps->first : step.step, step.step};
  } catch (const std::runtime_error&) {
    known = false;
  }
};

void late(const Case& c, Findings& found) {
  if (c.arrivals == nullptr) return;
  const Lateness l = lateness_of(*c.arrivals);
  std::vector<LateRank> ranks = l.ranks;
  std::ranges::stable_sort(ranks, std::ranges::greater(), &LateRank::own_ns);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!stands_out(i, ranks, l)) continue;
    const LateRank& r = ranks[i];
    const auto worst = std::ranges::find(l.worst, r.rank, &LateArrival::rank);
    if (worst == l.worst.end()) continue;
    Finding& f = add(found, Kind::late, {r.rank},
                     {{"last", r.last},
                      {"collectives", r.collectives},
                      {"behind", Ns{r.own_ns()}},
                      {"across_hosts", l.across_hosts},
                      {"latest_at", Time{worst->realtime_ns}}});
    f.time = TimeRange{r.first_realtime_ns, r.last_realtime_ns};
    const StepsIn in = c.shown(*r.rank, StepsIn{r.rank, *f.time});
    if (in.known) f.steps = in.steps;
    // No cost: waiting ranks may compute meanwhile, and a rank that lags more and more counts its
    // whole lag at each collective (tried: twice the truth). why/ gives the cost if there are
    // device times.
    f.communicator = worst->communicator;
    f.seq = worst->seq;
    f.between = {{worst->seq, worst->seq + 1}};
    f.function = collective_name(worst->bucket);
    f.evidence.push_back({Say::latest_arrival,
                          {{"late", Ns{worst->late_ns}},
                           {"function", f.function},
                           {"seq", worst->seq},
                           {"communicator", text::printable(worst->communicator.str())}}});
    f.evidence.push_back({Say::arrivals_are, {{"on_device", l.on_device}}});
  }
}

}  // namespace

Lateness lateness_of(const Arrivals& arrivals, const steps::Found& found) {
  Counter counter(arrivals);
  arrivals.each([&](const Arrivals::Comm& comm, std::size_t n) { counter.see(comm, n); });
  Lateness lateness = std::move(counter).result();
  // When the device reaches a collective, the host may already be in the next step. So the step is
  // that of the host's call.
  for (LateArrival& a : lateness.worst) a.step = steps::step_at(found, a.rank, a.called_ns);
  return lateness;
}

extern const Diagnosis kLateRanks{kCheck, late};

}  // namespace tprof::check
