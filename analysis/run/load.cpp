#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "align/clocks.h"
#include "job/hosts.h"
#include "read/error.h"
#include "read/events.h"
#include "read/parallel.h"
#include "run/run.h"

namespace tprof::run {
namespace {

// Names a collective by its number, or a message by its two ends and its number.
struct Meets {
  std::uint32_t comm = 0;
  std::int32_t from = -1;  // ranks on the communicator; -1: a collective
  std::int32_t to = -1;
  std::uint64_t number = 0;
  auto operator<=>(const Meets&) const = default;
};

// A row is found by when its first call was made, and on which thread.
struct Begun {
  std::int64_t called_ns = 0;
  std::int64_t thread = 0;
  auto operator<=>(const Begun&) const = default;
};

struct Timed {
  Begun begun{};
  std::int64_t came_ns = 0;
  std::int64_t ended_ns = 0;
  std::int64_t lane = 0;
  std::uint32_t comm = Calls::kNoComm;
  std::int64_t waited_ns = 0;
};

bool blocks(const read::Event& e) {
  const bool between = e.bucket == Bucket::H2D || e.bucket == Bucket::D2H;
  return between &&
         (e.host_memory == HostMemory::pageable || e.name.str().find("Async") == std::string::npos);
}

// The lines of one rank, as they were read.
struct Lines {
  std::vector<std::pair<Begun, Meets>> meets{};
  std::vector<Timed> timed{};
  std::vector<Interval> work{};
  std::vector<Interval> blocked{};  // the host, in copies that wait for the device
  // By thread: its last group, and when that began on each stream.
  std::map<std::int64_t, std::pair<std::int64_t, std::map<std::int64_t, std::int64_t>>> groups{};

  void call(const read::Event& e, const read::Process& p) {
    if (e.unfinished || e.captured || e.failed) return;
    if (blocks(e)) blocked.push_back({e.ts_ns, e.ts_ns + e.dur_ns});
    if (!e.comm || !e.numbered) return;
    std::int64_t called = e.ts_ns;
    if (e.group != 0) {
      auto& [group, begun] = groups[e.thread];
      if (std::exchange(group, e.group) != e.group) begun.clear();
      called = begun.try_emplace(e.stream.value_or(-1), e.ts_ns).first->second;
    }
    const read::Comm* comm = read::comm_of(p, *e.comm);
    if (comm == nullptr || !comm->known()) return;
    Meets m{.comm = static_cast<std::uint32_t>(*e.comm), .number = e.seq};
    if (e.bucket == Bucket::P2P) {
      if (!e.peer || e.bytes == 0 || *e.peer == comm->rank) return;  // nobody else has to come
      const auto me = static_cast<std::int32_t>(comm->rank);
      const auto peer = static_cast<std::int32_t>(*e.peer);
      const bool sends = e.name == "ncclSend";
      m.from = sends ? me : peer;
      m.to = sends ? peer : me;
    }
    meets.push_back({{called, e.thread}, m});
  }
  void time(const read::DeviceTime& t) {
    timed.push_back({{t.ts_ns - t.queued_ns, t.thread},
                     t.ts_ns,
                     t.ts_ns + t.dur_ns,
                     t.lane,
                     t.comm ? static_cast<std::uint32_t>(*t.comm) : Calls::kNoComm,
                     t.waited_ns});
  }
};

std::vector<Interval> joined(std::vector<Interval> all) {
  std::ranges::sort(all, {}, &Interval::from_ns);
  std::size_t kept = 0;
  for (const Interval& i : all) {
    if (kept != 0 && i.from_ns <= all[kept - 1].to_ns) {
      all[kept - 1].to_ns = std::max(all[kept - 1].to_ns, i.to_ns);
    } else {
      all[kept++] = i;
    }
  }
  all.resize(kept);
  return all;
}

// A host that was blocked had waited when it called the next row.
void add_blocked(const std::vector<Interval>& blocked, Calls& c) {
  std::vector<std::size_t> by_call(c.size());
  std::iota(by_call.begin(), by_call.end(), std::size_t{0});
  std::ranges::stable_sort(by_call, {}, [&](std::size_t i) { return c.called_ns[i]; });
  for (const Interval& b : blocked) {
    const auto next = std::ranges::lower_bound(by_call, b.to_ns, {},
                                               [&](std::size_t i) { return c.called_ns[i]; });
    if (next != by_call.end()) c.waited_ns[*next] += b.to_ns - b.from_ns;
  }
}

// The rows of a rank in their order, and what each of them meets.
std::vector<std::pair<Meets, std::uint32_t>> fill(Lines lines, Rank& rank) {
  std::ranges::sort(lines.timed, {},
                    [](const Timed& t) { return std::tie(t.came_ns, t.ended_ns); });
  std::ranges::sort(lines.meets);
  std::map<std::int64_t, std::uint16_t> streams;
  std::vector<std::pair<Meets, std::uint32_t>> meets;
  Calls& c = rank.calls;
  for (const Timed& t : lines.timed) {
    const auto row = static_cast<std::uint32_t>(c.size());
    c.came_ns.push_back(t.came_ns);
    c.ended_ns.push_back(t.ended_ns);
    c.called_ns.push_back(t.begun.called_ns);
    c.waited_ns.push_back(t.waited_ns);
    c.comm.push_back(t.comm);
    const auto number = static_cast<std::uint16_t>(streams.size());
    c.stream.push_back(streams.try_emplace(t.lane, number).first->second);
    const auto of_row =
        std::ranges::equal_range(lines.meets, t.begun, {}, &std::pair<Begun, Meets>::first);
    c.messages.push_back(!of_row.empty() && of_row.front().second.from >= 0);
    for (const auto& [begun, m] : of_row) meets.emplace_back(m, row);
  }
  add_blocked(lines.blocked, c);
  rank.work = joined(std::move(lines.work));
  return meets;
}

// The clock of a host, by the collectives that cross hosts.
align::Clocks clocks_of(const Run& run, const job::Hosts& hosts) {
  align::ClockFit fit(hosts.all().size());
  for (std::size_t m = 0; m < run.meetings(); ++m) {
    std::map<std::size_t, align::Passage> by_host;
    for (const Row& r : run.meeting(m)) {
      const Rank& rank = run.ranks[r.rank];
      const std::size_t host = hosts.of(*rank.process);
      const std::int64_t came = rank.calls.came_ns[r.row];
      const std::int64_t ended = rank.calls.ended_ns[r.row];
      const auto [at, fresh] =
          by_host.try_emplace(host, align::Passage{host, true, came, true, ended, ended});
      if (fresh) continue;
      at->second.last_start = std::max(at->second.last_start, came);
      at->second.first_end = std::min(at->second.first_end, ended);
    }
    if (by_host.size() < 2) continue;
    std::vector<align::Passage> passages;
    for (const auto& [host, passage] : by_host) passages.push_back(passage);
    fit.add(passages);
  }
  return fit.clocks();
}

template <typename Move>
void move_times(Rank& rank, const Move& move) {
  Calls& c = rank.calls;
  rank.zero_ns = move(rank.zero_ns);
  for (auto* column : {&c.came_ns, &c.ended_ns, &c.called_ns}) {
    for (std::int64_t& t : *column) t = move(t);
  }
  for (Interval& i : rank.work) i = {move(i.from_ns), move(i.to_ns)};
}

}  // namespace

Run load(const job::Job& job, const read::Traces& traces, const Parts& only) {
  Run run;
  std::map<const read::Process*, std::size_t> places;
  for (const read::Process* p : job.processes) {
    if (!p->header.rank) continue;
    places.emplace(p, run.ranks.size());
    run.ranks.push_back({.process = p});
  }
  std::vector<Lines> lines(run.ranks.size());
  read::in_parallel(traces.traces.size(), [&](std::size_t i) {
    const auto of = [&](const read::Process& p) -> Lines& { return lines[places.at(&p)]; };
    const auto wanted = [&](const read::Process& p, std::int64_t ns) {
      const auto part = only.find(&p);
      return part == only.end() || (part->second.from_ns <= ns && ns < part->second.to_ns);
    };
    try {
      read::read_lines(traces.traces[i],
                       {.wanted = [&](const read::Process& p) { return places.contains(&p); },
                        .event =
                            [&](const read::Process& p, const read::Event& e) {
                              if (wanted(p, e.ts_ns)) of(p).call(e, p);
                            },
                        .device_time =
                            [&](const read::Process& p, const read::DeviceTime& t) {
                              if (wanted(p, t.ts_ns - t.queued_ns)) of(p).time(t);
                            },
                        .busy =
                            [&](const read::Process& p, const read::Busy& b) {
                              if (wanted(p, b.ts_ns))
                                of(p).work.push_back({b.ts_ns, b.ts_ns + b.dur_ns});
                            }});
    } catch (const read::BadInput&) {
      for (const read::Process& p : traces.traces[i].processes) {
        if (places.contains(&p)) of(p) = {};
      }
    }
  });

  // Ranks know a communicator by numbers of their own, and all by its id.
  std::map<std::string, std::uint32_t, std::less<>> ids;
  std::vector<std::pair<Meets, Row>> all;
  const job::Hosts hosts(job);
  for (std::uint32_t r = 0; r < run.ranks.size(); ++r) {
    Rank& rank = run.ranks[r];
    for (auto [meets, row] : fill(std::exchange(lines[r], {}), rank)) {
      const std::string& id = rank.process->comms.at(meets.comm).id;
      meets.comm = ids.try_emplace(id, static_cast<std::uint32_t>(ids.size())).first->second;
      all.emplace_back(meets, Row{r, row});
    }
    move_times(rank, [&](std::int64_t t) { return hosts.on_axis(*rank.process, t); });
  }
  std::ranges::stable_sort(all, {}, &std::pair<Meets, Row>::first);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i != 0 && all[i].first != all[i - 1].first) {
      run.first.push_back(static_cast<std::uint32_t>(i));
    }
    run.members.push_back(all[i].second);
  }
  if (!all.empty()) run.first.push_back(static_cast<std::uint32_t>(all.size()));
  const align::Clocks clocks = clocks_of(run, hosts);
  for (Rank& rank : run.ranks) {
    const std::size_t host = hosts.of(*rank.process);
    move_times(rank, [&](std::int64_t t) { return clocks.aligned(host, t); });
  }
  return run;
}

}  // namespace tprof::run
