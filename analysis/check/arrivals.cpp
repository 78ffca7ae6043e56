#include "check/arrivals.h"

#include <algorithm>
#include <map>
#include <optional>

#include "check/agreement.h"
#include "check/values_read.h"
#include "interpose/format/ledger.h"
#include "interpose/format/record.h"
#include "run/columns.h"

namespace tprof::check {
namespace {

constexpr std::int64_t kGrainNs = 1000;  // CUDA events resolve half a microsecond
// Lines may be this many collectives ahead of the last ledger. A number beyond that is damaged.
constexpr std::uint64_t kMostAhead = 4096;

// Returns nullopt if it is unknown who waits for whom. NCCL does nothing for a count of 0.
std::optional<CalledAs> called_as(const read::Event& e, std::int64_t rank) {
  const bool all = run::all_wait(e.bucket);
  const bool rooted = e.peer && (e.bucket == Bucket::BROADCAST || e.bucket == Bucket::REDUCE);
  if (e.bytes == 0 || !(all || rooted)) return std::nullopt;
  const bool root = e.peer == rank;
  return CalledAs{.bucket = e.bucket,
                  .size_class = static_cast<std::uint8_t>(bytes_class(e.bytes)),
                  .rooted = rooted,
                  .awaited = all || root == (e.bucket == Bucket::BROADCAST),
                  .waits = all || root == (e.bucket == Bucket::REDUCE),
                  .called = true};
}

// Messages are numbered separately. A mixed group has one time as a whole.
bool is_collective(const text::Kept& function) {
  static const text::Kept kOthers[] = {"ncclSend", "ncclRecv", kGroupName};
  return std::ranges::find(kOthers, function) == std::end(kOthers);
}

bool counts_device_time(const read::Process& p) {
  return std::ranges::any_of(read::rows_of(p), [](const read::Row& row) {
    return !is_copy(row.bucket) && row.bucket != Bucket::P2P && row.amounts.device_timed != 0;
  });
}

// Fills the lists of one rank from its lines. No other rank touches them.
class ArrivalsOfRank {
 public:
  ArrivalsOfRank(const read::Process& rank, Arrivals& to)
      : stride_(to.stride), on_device_(to.on_device), base_ns_(to.hosts.on_axis(rank, 0)) {
    for (const auto& [number, comm] : rank.comms) {
      const auto known = std::ranges::lower_bound(to.comms, comm.id.str(), {}, &Arrivals::Comm::id);
      if (known == to.comms.end() || known->id != comm.id.str()) continue;
      const auto of_number = [](const Arrivals::Rank& r) { return r.comm->rank; };
      for (Arrivals::Rank& r : std::ranges::equal_range(known->ranks, comm.rank, {}, of_number)) {
        if (r.comm == &comm) lists_[number] = {&r, known->collectives / stride_ + kMostAhead};
      }
    }
  }

  void call(const read::Event& e) {
    if (!on_device_) values_.see(e);
    if (!e.collective() || e.failed || e.captured || e.seq % stride_ != 0) return;
    Arrivals::Rank* to = list(*e.comm, e.seq);
    const auto as = to == nullptr ? std::nullopt : called_as(e, to->comm->rank);
    if (!as) return;
    const std::size_t n = e.seq / stride_;
    const bool timed = to->as[n].timed;
    to->as[n] = *as;
    to->as[n].timed = timed;
    to->called_ns[n] = base_ns_ + e.ts_ns;
    if (on_device_) return;
    to->came_ns[n] = to->called_ns[n];
    values_.collective(e.ts_ns, as->rooted ? ValuesRead::kNobody : *e.comm, n);
  }
  void device_time(const read::DeviceTime& t) {
    if (!on_device_ || !t.comm || !t.seq || *t.seq % stride_ != 0 || !is_collective(t.name)) return;
    Arrivals::Rank* to = list(*t.comm, *t.seq);
    if (to == nullptr) return;
    const std::size_t n = *t.seq / stride_;
    to->as[n].timed = true;
    to->came_ns[n] = base_ns_ + t.ts_ns;
    to->ended_ns[n] = to->came_ns[n] + t.dur_ns;
  }
  void end() {
    values_.each([&](std::int64_t comm, std::size_t n, std::int64_t ns) {
      lists_.at(comm).first->read_ns[n] = ns;
    });
    values_ = {};
  }

 private:
  // Null: no other rank is on it, or the ledgers have fewer collectives.
  Arrivals::Rank* list(std::int64_t comm, std::uint64_t seq) {
    const auto known = lists_.find(comm);
    const std::uint64_t n = seq / stride_;
    if (known == lists_.end() || n >= known->second.second) return nullptr;
    Arrivals::Rank& to = *known->second.first;
    if (n < to.as.size()) return &to;
    to.as.resize(n + 1);
    to.came_ns.resize(n + 1);
    to.called_ns.resize(n + 1);
    (on_device_ ? to.ended_ns : to.read_ns).resize(n + 1);
    return &to;
  }

  std::uint64_t stride_;
  bool on_device_;
  std::int64_t base_ns_;  // on its host's axis
  // By the rank's own communicator number: the list and its limit.
  std::map<std::int64_t, std::pair<Arrivals::Rank*, std::uint64_t>> lists_{};
  ValuesRead values_;
};

// Returns what each host did in a collective.
std::vector<align::Passage> passages_of(const Arrivals::Comm& comm, std::size_t n) {
  std::vector<align::Passage> all;
  for (const Arrivals::Rank& r : comm.ranks) {
    const CalledAs* as = r.at(n);
    if (as != nullptr) align::add(all, r.host, as->awaited, r.came_ns[n], as->waits, r.ended_ns[n]);
  }
  return all;
}

void find_clocks(Arrivals& a) {
  const std::size_t hosts = a.hosts.all().size();
  const auto each_across = [&](const auto& see) {
    if (!a.on_device || hosts < 2) return;
    a.each([&](const Arrivals::Comm& comm, std::size_t n) {
      const std::vector<align::Passage> passages = passages_of(comm, n);
      if (passages.size() > 1) see(passages);
    });
  };
  align::ClockFit fit(hosts);
  each_across([&](const auto& passages) {
    fit.add(passages);
    ++a.across_hosts;
  });
  a.clocks = fit.clocks();
  each_across([&](const auto& passages) {
    if (a.clocks.violation(passages) > kGrainNs) ++a.violated;
  });
}

}  // namespace

void Arrivals::each(const std::function<void(const Comm&, std::size_t n)>& see) const {
  for (const Comm& comm : comms) {
    std::size_t most = 0;
    for (const Rank& r : comm.ranks) most = std::max(most, r.as.size());
    for (std::size_t n = 0; n < most; ++n) {
      const CalledAs* first = nullptr;
      bool same = true;
      for (const Rank& r : comm.ranks) {
        const CalledAs* as = r.at(n);
        if (first == nullptr) first = as;
        same = same && (as == nullptr || as->same_kind(*first));
      }
      if (!same) break;
      if (first != nullptr) see(comm, n);
    }
  }
}

double Arrivals::error_ns(std::size_t a, std::size_t b) const {
  const auto& all = hosts.all();
  return clocks.at_most(a, b) + static_cast<double>(std::max(all[a].slack_ns, all[b].slack_ns));
}

Arrivals arrivals_of(const run::Lines& lines, std::size_t room) {
  const job::Job& job = lines.job();
  Arrivals a{.hosts = job::Hosts(job)};
  // The ledger has only sums of device time, which include calls whose lines are gone.
  a.on_device =
      timed_on_device(job) && std::ranges::count_if(job.processes, [&](const read::Process* p) {
                                return counts_device_time(*p) && lines.has_device_times(*p);
                              }) >= 2;
  std::uint64_t calls = 0;
  for (const Communicator& c : communicators(job)) {
    if (c.members.size() < 2) continue;
    Arrivals::Comm& comm = a.comms.emplace_back();
    comm.id = c.id;
    for (const Member& m : c.members) {
      if (m.done != nullptr) comm.collectives = std::max(comm.collectives, m.count());
      comm.ranks.push_back({.process = m.process, .comm = m.comm, .host = a.hosts.of(*m.process)});
    }
    const std::uint64_t most = UINT64_MAX / comm.ranks.size();
    calls = read::saturated_sum(calls, std::min(comm.collectives, most) * comm.ranks.size());
  }
  std::ranges::sort(a.comms, {}, &Arrivals::Comm::id);
  while (calls / a.stride > room) a.stride *= 2;
  lines.each([&](const read::Process& rank) { return ArrivalsOfRank(rank, a); },
             [](const ArrivalsOfRank& /*the lists have everything*/) {});
  for (Arrivals::Comm& comm : a.comms) {
    for (Arrivals::Rank& r : comm.ranks) {
      for (std::size_t n = 0; n < r.as.size(); ++n) {
        r.has_lines = r.has_lines || r.at(n) != nullptr;
        a.untimed += a.on_device && r.as[n].called && !r.as[n].timed ? 1 : 0;
      }
    }
  }
  find_clocks(a);
  return a;
}

bool timed_on_device(const job::Job& job) {
  return std::ranges::count_if(job.processes,
                               [](const read::Process* p) { return counts_device_time(*p); }) >= 2;
}

const char* collective_name(Bucket bucket) {
  switch (bucket) {
    case Bucket::ALLGATHER:
      return "ncclAllGather";
    case Bucket::RESHARDING:
      return "ncclReduceScatter";
    case Bucket::ALLTOALL:
      return "ncclAlltoAll";
    default:
      return "ncclAllReduce";
  }
}

}  // namespace tprof::check
