#include "export/timeline.h"

#include <fmt/format.h>

#include <set>
#include <tuple>
#include <utility>

#include "interpose/format/ranges.h"
#include "interpose/format/record.h"
#include "read/parallel.h"

namespace tprof::trace_export {
namespace {

static_assert(kLaneCategory == "LANE");

constexpr std::int64_t kWindows = 1000;
constexpr std::int64_t kShortestWindow = 1'000'000;
// The ledgers tell the job's length; lines far after its end get no rate.
constexpr std::int64_t kMostWindows = 4096;

// Kept for all ranks together, 24 bytes each. Further calls get no arrow, and their device times no
// size.
constexpr std::size_t kMostCalls = std::size_t{1} << 23;

// Above the lanes of ranges, devices and computation, below those of other tools.
constexpr std::int64_t kStepsLane = (std::int64_t{1} << 24) - 2;
constexpr std::int64_t kExposedLane = (std::int64_t{1} << 24) - 1;

constexpr auto kByBegin = [](const auto& call) { return std::pair(call.begin_ns, call.thread); };

template <typename T>
void order(std::vector<T>& all) {
  if (!std::ranges::is_sorted(all, {}, kByBegin)) std::ranges::stable_sort(all, {}, kByBegin);
}

// Calls matched by number: the collectives of a communicator, or messages from one rank to another.
struct Channel {
  text::Kept comm{};  // its id
  std::int64_t nranks = 0;
  std::int64_t from = -1;  // -1: all
  std::int64_t to = -1;

  auto operator<=>(const Channel&) const = default;  // NOLINT(modernize-use-nullptr)
};
struct Arrival {
  std::uint64_t seq = 0;
  std::int64_t at_ns = 0;  // on the axis of the merged trace
  std::uint32_t rank = 0;  // index of the rank
  std::uint32_t call = 0;  // index in the rank's calls
};
using Arrivals = std::map<Channel, std::vector<Arrival>>;

struct Reading {
  std::size_t most_calls = 0;  // per rank
  bool arrows = false;
  std::int64_t window_ns = 1;
};

// The lines of one rank.
struct RankLines {
  RankLines(const read::Process& of, const Placement& placement, const Reading& how)
      : rank(of), to(placement), reading(how) {}

  void call(const read::Event& e) {
    all_chosen = all_chosen && e.chosen;
    if (!e.unfinished && e.chosen) mine.slices.add(e.thread, e.ts_ns, e.dur_ns);
    if (e.unfinished || e.failed || e.captured || !e.chosen) return;
    add_rate(e);
    const bool message = e.bucket == Bucket::P2P;
    const bool receives = message && e.name == "ncclRecv";
    calls.push_back({.begin_ns = e.ts_ns,
                     .dur_ns = e.dur_ns,
                     .thread = static_cast<std::uint32_t>(e.thread),
                     .seq = e.seq,
                     .bytes = e.bytes,
                     .channel = channel_of(e, receives),
                     .bucket = e.bucket,
                     .message = message,
                     .receives = receives,
                     .function = e.name});
  }

  void launch(const read::Event& e) {
    mine.slices.add(e.thread, e.ts_ns, e.dur_ns);
    if (e.unfinished) return;
    calls.push_back({.begin_ns = e.ts_ns, .thread = static_cast<std::uint32_t>(e.thread)});
  }

  void device_time(const read::DeviceTime& t) {
    const run::Interval span{t.ts_ns, t.ts_ns + t.dur_ns};
    if (t.launch) hides.push_back(span);  // a graph includes its kernels
    if (!t.chosen) return;
    mine.slices.add(t.lane, t.ts_ns, t.dur_ns);
    if (t.comm) communicates.push_back(span);
    times.push_back(
        {t.ts_ns - t.queued_ns, static_cast<std::uint32_t>(t.thread), t.calls == 1, span});
  }

  void range(const read::Range& r) {
    if (r.phase != read::Range::Phase::closed) return;
    mine.slices.add(r.thread + std::int64_t{kRangeLane}, r.ts_ns, r.dur_ns);
  }

  void busy(const read::Busy& b) {
    mine.slices.add(b.lane, b.ts_ns, b.dur_ns);
    followed.from_ns = std::min(followed.from_ns, b.ts_ns);
    followed.to_ns = std::max(followed.to_ns, b.ts_ns + b.dur_ns);
    computes = computes || !b.unsure;
    hides.push_back({b.ts_ns, b.ts_ns + b.dur_ns});
  }

  void end() {
    match();
    mine.slices.finish();
    find_without_line();
    find_exposed();
    calls = {};
    times = {};
  }

  struct Call {
    std::int64_t begin_ns;
    std::int64_t dur_ns = 0;
    std::uint32_t thread;
    std::uint64_t seq = 0;
    std::uint64_t bytes = DrawnCall::kNoBytes;
    std::vector<Arrival>* channel = nullptr;
    Bucket bucket = Bucket::OTHER_COLL;  // also for graph launches
    bool message = false;
    bool receives = false;
    text::Kept function{};
  };
  struct Time {
    std::int64_t begin_ns;
    std::uint32_t thread;
    bool alone;
    run::Interval on_device;
  };

  // Null if the call is neither a collective nor a message, or can't be matched.
  std::vector<Arrival>* channel_of(const read::Event& e, bool receives) {
    const bool message = e.bucket == Bucket::P2P;
    if (!reading.arrows || !e.numbered || !e.comm) return nullptr;
    if (message && (!e.peer || (!receives && e.name != "ncclSend"))) return nullptr;
    const std::tuple key(*e.comm, message ? *e.peer : -1, receives);
    if (key == last_key) return last_channel;
    last_key = key;
    const read::Comm* comm = read::comm_of(rank, e.comm);
    if (comm == nullptr || !comm->known() || comm->nranks < 2) return last_channel = nullptr;
    Channel channel{comm->id, comm->nranks};
    if (message) channel.from = receives ? *e.peer : comm->rank;
    if (message) channel.to = receives ? comm->rank : *e.peer;
    return last_channel = &arrivals[channel];
  }

  void add_rate(const read::Event& e) {
    const std::int64_t window = to.moved(e.ts_ns) / reading.window_ns;
    if (window < 0 || window >= kMostWindows || e.bytes == 0) return;
    auto& bytes = mine.rates[static_cast<std::size_t>(e.bucket)];
    const auto i = static_cast<std::size_t>(window);
    if (bytes.size() <= i) bytes.resize(i + 1);
    bytes[i] += e.bytes;
  }

  // Matches calls with their device times.
  void match() {
    order(calls);
    order(times);
    auto time = times.begin();
    for (const Call& c : calls) {
      while (time != times.end() && kByBegin(*time) < kByBegin(c)) ++time;
      const bool timed = time != times.end() && kByBegin(*time) == kByBegin(c);
      if (timed && is_copy(c.bucket)) ++with_line[{c.function, c.bucket}];
      if (mine.calls.size() == reading.most_calls || (!timed && c.channel == nullptr)) continue;
      DrawnCall call{.begin_ns = c.begin_ns, .thread = c.thread};
      call.bucket = static_cast<std::uint8_t>(c.bucket);
      call.on_device = timed && time->alone;
      call.receives = c.receives;
      call.message = c.message;
      if (call.on_device) call.bytes = std::min(c.bytes, DrawnCall::kNoBytes);
      if (c.channel != nullptr && (c.channel->empty() || c.channel->back().seq != c.seq)) {
        const run::Interval span =
            call.on_device ? time->on_device : run::Interval{c.begin_ns, c.begin_ns + c.dur_ns};
        c.channel->push_back({c.seq, to.moved(touched_ns(span.from_ns, span.ns(), c.receives)), 0,
                              static_cast<std::uint32_t>(mine.calls.size())});
      }
      mine.calls.push_back(call);
    }
  }

  // Finds when communication ran on the device without computation, as far as known.
  void find_exposed() {
    if (!computes || communicates.empty()) return;
    hides = run::joined(std::move(hides));
    run::Intervals free;
    for (std::size_t i = 1; i < hides.size(); ++i) {
      free.push_back({hides[i - 1].to_ns, hides[i].from_ns});
    }
    mine.exposed = run::common(run::common(run::joined(std::move(communicates)), free), {followed});
  }

  // Copies within a device usually have no lines. If the ledger has more timed copies of a function
  // than lines, all in one bucket, the others are in that bucket.
  void find_without_line() {
    if (!all_chosen || !rank.footer || rank.end == read::End::lost) return;
    std::map<std::pair<text::Kept, Bucket>, std::uint64_t> timed;
    for (const read::Row& row : read::rows_of(rank)) {
      if (is_copy(row.bucket)) timed[{row.name, row.bucket}] += row.amounts.device_timed;
    }
    std::set<text::Kept> unclear;
    for (const auto& [key, n] : timed) {
      if (n <= with_line[key]) continue;
      const auto& [function, bucket] = key;
      if (!mine.without_line.try_emplace(function, bucket).second) unclear.insert(function);
    }
    for (const text::Kept& function : unclear) mine.without_line.erase(function);
  }

  const read::Process& rank;
  const Placement& to;
  const Reading& reading;
  RankTimeline mine;
  Arrivals arrivals;
  std::vector<Call> calls;
  std::vector<Time> times;
  std::tuple<std::int64_t, std::int64_t, bool> last_key{-1, -1, false};
  std::vector<Arrival>* last_channel = nullptr;
  run::Intervals communicates;
  run::Intervals hides;  // computation, and times where it is unknown
  run::Interval followed{INT64_MAX, INT64_MIN};
  bool computes = false;
  // Timed copies with a line, by function and bucket.
  std::map<std::pair<text::Kept, Bucket>, std::uint64_t> with_line;
  bool all_chosen = true;
};

// Finds the order in which ranks came, and numbers the arrows between them. Simultaneous arrivals
// are in rank order.
void find_turns(Arrivals& by_channel, const std::vector<RankTimeline*>& ranks,
                std::int64_t& next_arrow) {
  std::vector<std::vector<Arrival>*> channels;
  for (auto& [channel, arrivals] : by_channel) channels.push_back(&arrivals);
  read::in_parallel(channels.size(), [&](std::size_t i) {
    std::ranges::sort(*channels[i], {},
                      [](const Arrival& a) { return std::tuple(a.seq, a.at_ns, a.rank); });
  });
  for (const std::vector<Arrival>* all : channels) {
    for (auto first = all->begin(); first != all->end();) {
      const auto end =
          std::find_if(first, all->end(), [&](const Arrival& a) { return a.seq != first->seq; });
      for (auto a = first; a != end && end - first > 1; ++a) {
        DrawnCall& call = ranks[a->rank]->calls[a->call];
        const Turn turn = a == first ? Turn::first : a + 1 == end ? Turn::last : Turn::between;
        call.turn = static_cast<std::uint8_t>(turn);
        call.meet = static_cast<std::uint32_t>(next_arrow);
      }
      if (end - first > 1) ++next_arrow;
      first = end;
    }
  }
}

// Writes a lane above the threads, which have 0. `name` and `number` name a slice.
template <typename Slices, typename Number>
void write_lane(std::string_view title, std::int64_t lane, int index, const Slices& slices,
                std::string_view name, std::string_view color, const Number& number,
                const Placement& to, Pen& out) {
  out.line() << "{\"cat\":\"LANE\",\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":" << to.pid
             << ",\"tid\":" << lane << ",\"args\":{\"name\":\"" << title << "\"}}";
  out.line() << "{\"cat\":\"LANE\",\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":" << to.pid
             << ",\"tid\":" << lane << ",\"args\":{\"sort_index\":" << index << "}}";
  for (const auto& s : slices) {
    out.line() << "{\"cat\":\"LANE\",\"name\":\"" << name << number(s) << "\",";
    out.slice(to.pid, lane, to.moved(s.from_ns), to.length(s.from_ns, s.to_ns - s.from_ns))
        << ",\"cname\":\"" << color << "\"}";
  }
}

// Writes a line for each window whose rates differ from the previous one's.
void write_rates(const RankTimeline& rank, std::int64_t window_ns, const Placement& to, Pen& out) {
  std::size_t windows = 0;
  for (const auto& bytes : rank.rates) windows = std::max(windows, bytes.size());
  std::string before;
  for (std::size_t i = 0; windows != 0 && i <= windows; ++i) {  // the last one ends all rates
    std::string rates;
    for (std::size_t b = 0; b < kBucketCount; ++b) {
      const auto& bytes = rank.rates[b];
      if (bytes.empty()) continue;
      const double in_window = i < bytes.size() ? static_cast<double>(bytes[i]) : 0;
      rates +=
          fmt::format("{}\"{}\":{}", rates.empty() ? "" : ",", title_of(static_cast<Bucket>(b)),
                      in_window * 1e9 / static_cast<double>(window_ns));
    }
    if (rates == before) continue;
    (out.line() << "{\"cat\":\"LANE\",\"name\":\"bytes/s\",\"ph\":\"C\",\"pid\":" << to.pid
                << ",\"tid\":0,\"ts\":")
            .micros(static_cast<std::int64_t>(i) * window_ns)
        << ",\"args\":{" << rates << "}}";
    before = std::move(rates);
  }
}

}  // namespace

const DrawnCall* RankTimeline::call(std::int64_t begin_ns, std::int64_t thread,
                                    std::size_t& near) const {
  const std::pair wanted(begin_ns, static_cast<std::uint32_t>(thread));
  auto at = calls.begin() + static_cast<std::ptrdiff_t>(std::min(near, calls.size()));
  for (int steps = 0; steps < 8 && at != calls.end() && kByBegin(*at) < wanted; ++steps) ++at;
  if (at == calls.end() || kByBegin(*at) != wanted) {
    at = std::ranges::lower_bound(calls, wanted, {}, kByBegin);
  }
  near = static_cast<std::size_t>(at - calls.begin());
  return at != calls.end() && kByBegin(*at) == wanted ? &*at : nullptr;
}

std::optional<Bucket> RankTimeline::bucket_without_line(std::string_view function) const {
  if (without_line.empty()) return std::nullopt;
  const auto found = without_line.find(text::Kept(function));
  return found == without_line.end() ? std::nullopt : std::optional(found->second);
}

std::int64_t window_of(std::int64_t length_ns) {
  for (std::int64_t ten = kShortestWindow;; ten *= 10) {
    for (const std::int64_t window : {ten, 2 * ten, 5 * ten}) {
      if (length_ns / window < kWindows) return window;
    }
  }
}

Timeline::Timeline(const Members& members, const filter::Selection& asked, bool arrows)
    : only_(asked.filter()) {
  job::Job of = asked.job();
  std::erase_if(of.processes, [&](const read::Process* p) { return !members.contains(p); });
  std::int64_t length_ns = 0;
  for (const auto& [p, member] : members) {
    if (p->ledger) length_ns = std::max(length_ns, member.to->moved(p->ledger->ts_ns));
  }
  window_ns_ = window_of(length_ns);
  const Reading reading{kMostCalls / std::max<std::size_t>(of.processes.size(), 1), arrows,
                        window_ns_};
  const run::Lines lines = asked.lines().of(of);
  found_ = asked.found() ? *asked.found() : steps::find(lines);
  Arrivals arrivals;
  std::vector<RankTimeline*> ranks;
  lines.each(
      [&](const read::Process& rank) { return RankLines(rank, *members.at(&rank).to, reading); },
      [&](RankLines& rank) {
        for (auto& [channel, of_rank] : rank.arrivals) {
          for (Arrival& a : of_rank) a.rank = static_cast<std::uint32_t>(ranks.size());
          auto& all = arrivals[channel];
          all.insert(all.end(), of_rank.begin(), of_rank.end());
        }
        ranks.push_back(&(ranks_[&rank.rank] = std::move(rank.mine)));
      });
  find_turns(arrivals, ranks, next_arrow_);
  for (RankTimeline* rank : ranks) {
    rank->first_arrow = next_arrow_;
    next_arrow_ += static_cast<std::int64_t>(rank->calls.size());
  }
}

const RankTimeline* Timeline::of(const read::Process& process) const {
  const auto found = ranks_.find(&process);
  return found == ranks_.end() ? nullptr : &found->second;
}

void Timeline::write_lanes(const Member& member, Pen& out) const {
  const Placement& to = *member.to;
  if (const auto all = found_.ranks.find(member.process); all != found_.ranks.end()) {
    std::vector<steps::Interval> steps = all->second;
    std::erase_if(steps, [&](const auto& i) { return only_.steps && !only_.steps->holds(i.step); });
    if (!steps.empty()) {
      write_lane(
          "steps", kStepsLane, -2, steps, "step ", "grey",
          [](const steps::Interval& i) { return i.step; }, to, out);
    }
  }
  const RankTimeline* rank = of(*member.process);
  if (rank == nullptr) return;
  if (rank->exposed) {
    write_lane(
        "exposed communication", kExposedLane, -1, *rank->exposed, "exposed", "terrible",
        [](const run::Interval&) { return std::string_view(); }, to, out);
  }
  write_rates(*rank, window_ns_, to, out);
}

}  // namespace tprof::trace_export
