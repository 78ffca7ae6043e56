#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "align/clocks.h"
#include "interpose/format/thread_kind.h"
#include "job/hosts.h"
#include "read/events.h"
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
  std::uint64_t calls = 1;
};

bool blocks(const read::Event& e) {
  const bool between = e.bucket == Bucket::H2D || e.bucket == Bucket::D2H;
  return between &&
         (e.host_memory == HostMemory::pageable || e.name.str().find("Async") == std::string::npos);
}

struct Call {
  Begun begun{};
  Meets meets{};
  std::int64_t stream = -1;
  Bucket bucket{};
  text::Kept name{};
  bool wide = false;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  auto operator<=>(const Call&) const = default;
};

struct Copy {
  Begun begun{};
  std::int64_t stream = -1;
  std::uint64_t bytes = 0;
};

// The lines of one rank.
struct OfRank {
  OfRank() = default;
  OfRank(const read::Process& rank, const Parts& only) : process(&rank) {
    if (const auto part = only.find(&rank); part != only.end()) within = part->second;
  }

  const read::Process* process = nullptr;
  std::optional<Interval> within{};
  std::vector<Call> calls{};
  std::vector<Copy> copies{};
  std::vector<Timed> timed{};
  std::vector<Interval> work{};
  std::vector<Interval> unsure{};  // it may have computed
  std::vector<Blocked> blocked{};
  std::vector<std::pair<Load, std::int64_t>> loads{};  // and their threads
  std::set<std::int64_t> autograd{};                   // threads
  // By thread: its last group, and when that began on each stream.
  std::map<std::int64_t, std::pair<std::int64_t, std::map<std::int64_t, std::int64_t>>> groups{};

  bool wanted(std::int64_t ns) const {
    return !within || (within->from_ns <= ns && ns < within->to_ns);
  }
  void call(const read::Event& e) {
    if (!wanted(e.ts_ns) || e.unfinished || e.captured || e.failed) return;
    if (blocks(e)) {
      blocked.push_back({{e.ts_ns, e.ts_ns + e.dur_ns}, e.bucket == Bucket::H2D, e.bytes});
    }
    if (e.bucket == Bucket::H2D) loads.push_back({{e.ts_ns, e.bytes}, e.thread});
    if (!e.comm && e.stream) copies.push_back({{e.ts_ns, e.thread}, *e.stream, e.bytes});
    if (!e.comm || !e.numbered) return;
    std::int64_t called = e.ts_ns;
    if (e.group != 0) {
      auto& [group, begun] = groups[e.thread];
      if (std::exchange(group, e.group) != e.group) begun.clear();
      called = begun.try_emplace(e.stream.value_or(-1), e.ts_ns).first->second;
    }
    const read::Comm* comm = read::comm_of(*process, *e.comm);
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
    calls.push_back({{called, e.thread},
                     m,
                     e.stream.value_or(-1),
                     e.bucket,
                     e.name,
                     e.dtype == "float32",
                     e.count,
                     e.bytes});
  }
  void device_time(const read::DeviceTime& t) {
    if (!wanted(t.ts_ns - t.queued_ns)) return;
    timed.push_back({{t.ts_ns - t.queued_ns, t.thread},
                     t.ts_ns,
                     t.ts_ns + t.dur_ns,
                     t.lane,
                     t.comm ? static_cast<std::uint32_t>(*t.comm) : Calls::kNoComm,
                     t.waited_ns,
                     t.calls});
  }
  void busy(const read::Busy& b) {
    if (wanted(b.ts_ns)) (b.unsure ? unsure : work).push_back({b.ts_ns, b.ts_ns + b.dur_ns});
  }
  void thread(const read::ThreadName& t) {
    if (thread_kind(t.name) == ThreadKind::autograd) autograd.insert(t.thread);
  }
};

double sum_ns(const std::vector<Interval>& all) {
  double ns = 0;
  for (const Interval& i : all) ns += static_cast<double>(i.to_ns - i.from_ns);
  return ns;
}

// A device that may have computed did so for as long as others did: three quarters of the ranks
// keep within that. The rest of such a time was its host's.
void add_unsure(std::vector<OfRank>& lines) {
  std::vector<double> sure;
  for (const OfRank& rank : lines) sure.push_back(sum_ns(rank.work));
  std::ranges::sort(sure);
  const double usual = sure.empty() ? 0 : sure[sure.size() - 1 - sure.size() / 4];
  for (OfRank& rank : lines) {
    const double share =
        std::clamp((usual - sum_ns(rank.work)) / std::max(1.0, sum_ns(rank.unsure)), 0.0, 1.0);
    for (const Interval& i : rank.unsure) {
      const double ns = share * static_cast<double>(i.to_ns - i.from_ns);
      rank.work.push_back({i.from_ns, i.from_ns + static_cast<std::int64_t>(ns)});
    }
  }
}

// The copies that were not timed are behind a row on their stream, and ahead of the next.
std::vector<std::uint64_t> copied_before(const std::vector<Copy>& copies,
                                         const std::vector<Timed>& timed,
                                         const std::map<std::int64_t, std::uint16_t>& streams,
                                         const Calls& c) {
  std::set<Begun> known;
  for (const Timed& t : timed) known.insert(t.begun);
  std::map<std::uint16_t, std::map<std::int64_t, std::size_t>> rows;  // by stream and call
  for (std::size_t i = 0; i < c.size(); ++i) rows[c.stream[i]].emplace(c.called_ns[i], i);
  std::vector<std::uint64_t> bytes(c.size());
  for (const Copy& copy : copies) {
    const auto stream = streams.find(copy.stream);
    if (known.contains(copy.begun) || stream == streams.end()) continue;
    const auto& on_stream = rows[stream->second];
    const auto next = on_stream.upper_bound(copy.begun.called_ns);
    if (next != on_stream.end() && next != on_stream.begin()) bytes[next->second] += copy.bytes;
  }
  return bytes;
}

// The rows of a rank in their order, and what each of them meets.
std::vector<std::pair<Meets, std::uint32_t>> fill(OfRank lines, Rank& rank) {
  std::ranges::sort(lines.timed, {},
                    [](const Timed& t) { return std::tie(t.came_ns, t.ended_ns); });
  std::ranges::sort(lines.calls);
  std::map<std::int64_t, std::uint16_t> streams;     // by lane
  std::map<std::int64_t, std::uint16_t> streams_of;  // by the calls' number
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
    const auto of_row = std::ranges::equal_range(lines.calls, t.begun, {}, &Call::begun);
    const Call first = of_row.empty() ? Call() : of_row.front();
    c.messages.push_back(first.meets.from >= 0);
    c.bucket.push_back(first.bucket);
    c.name.push_back(first.name);
    c.count.push_back(first.count);
    c.wide.push_back(first.wide);
    c.made.push_back(static_cast<std::uint32_t>(t.calls));
    c.bytes.push_back(0);
    c.backward.push_back(lines.autograd.contains(t.begun.thread));
    for (const Call& call : of_row) {
      c.bytes.back() += call.bytes;
      meets.emplace_back(call.meets, row);
      streams_of.try_emplace(call.stream, c.stream.back());
    }
    // Calls that were timed together are alike, and not all of them are known by their lines.
    if (!of_row.empty()) c.bytes.back() = c.bytes.back() / of_row.size() * t.calls;
  }
  c.copied = copied_before(lines.copies, lines.timed, streams_of, c);
  std::ranges::sort(lines.blocked, {}, [](const Blocked& b) { return b.host.to_ns; });
  rank.blocked = std::move(lines.blocked);
  for (const auto& [load, thread] : lines.loads) {
    if (!lines.autograd.contains(thread)) rank.loads.push_back(load);
  }
  std::ranges::sort(rank.loads, {}, &Load::called_ns);
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
  for (Step& step : rank.steps) {
    step = {step.number, move(step.from_ns), move(step.to_ns)};
  }
  for (auto* column : {&c.came_ns, &c.ended_ns, &c.called_ns}) {
    for (std::int64_t& t : *column) t = move(t);
  }
  for (Interval& i : rank.work) i = {move(i.from_ns), move(i.to_ns)};
  for (Load& l : rank.loads) l.called_ns = move(l.called_ns);
  for (Blocked& b : rank.blocked) b.host = {move(b.host.from_ns), move(b.host.to_ns)};
}

}  // namespace

std::vector<Interval> joined(std::vector<Interval> all) {
  std::erase_if(all, [](const Interval& i) { return i.from_ns == i.to_ns; });
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

std::vector<Interval> busy_of(const Rank& rank, bool copies) {
  std::vector<Interval> busy = rank.work;
  for (std::size_t i = 0; i < rank.calls.size(); ++i) {
    if (!copies && rank.calls.comm[i] == Calls::kNoComm) continue;
    busy.push_back({rank.calls.came_ns[i], rank.calls.ended_ns[i]});
  }
  return joined(std::move(busy));
}

Run load(const Lines& from, const Parts& only, const Steps& steps) {
  Run run;
  const job::Job& job = from.job();
  std::map<const read::Process*, std::size_t> places;
  for (const read::Process* p : job.processes) {
    if (!p->header.rank) continue;
    places.emplace(p, run.ranks.size());
    const auto its = steps.find(p);
    run.ranks.push_back({.process = p});
    if (its != steps.end()) run.ranks.back().steps = its->second;
  }
  std::vector<OfRank> lines(run.ranks.size());
  from.each(
      [&](const read::Process& p) {
        return places.contains(&p) ? std::optional<OfRank>(std::in_place, p, only) : std::nullopt;
      },
      [&](OfRank& rank) { lines[places.at(rank.process)] = std::move(rank); });

  add_unsure(lines);
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
