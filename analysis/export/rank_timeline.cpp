#include "export/rank_timeline.h"

#include <algorithm>
#include <set>
#include <utility>

#include "interpose/format/ranges.h"

namespace tprof::trace_export {
namespace {

// The job's ledgers say how long it is; what comes far behind that has no rate.
constexpr std::int64_t kMostWindows = 4096;

constexpr auto kByBegin = [](const auto& call) { return std::pair(call.begin_ns, call.thread); };

template <typename T>
void order(std::vector<T>& all) {
  if (!std::ranges::is_sorted(all, {}, kByBegin)) std::ranges::stable_sort(all, {}, kByBegin);
}

// Reads one rank, which is the `order`-th.
class TimelineLines {
 public:
  TimelineLines(const read::Process& rank, const Placement& to, const Reading& reading,
                std::uint32_t order)
      : rank_(rank), to_(to), reading_(reading), order_(order) {}

  const read::Process& rank() const { return rank_; }
  RankTimeline take() { return std::move(mine_); }

  void call(const read::Event& e) {
    all_chosen_ = all_chosen_ && e.chosen;
    if (!e.unfinished && e.chosen) mine_.slices.add(e.thread, e.ts_ns, e.dur_ns);
    if (e.unfinished || e.failed || e.captured || !e.chosen) return;
    add_rate(e);
    const bool message = e.bucket == Bucket::P2P;
    const bool receives = message && e.name == "ncclRecv";
    calls_.push_back({.begin_ns = e.ts_ns,
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
    mine_.slices.add(e.thread, e.ts_ns, e.dur_ns);
    if (e.unfinished) return;
    calls_.push_back({.begin_ns = e.ts_ns, .thread = static_cast<std::uint32_t>(e.thread)});
  }

  void device_time(const read::DeviceTime& t) {
    const run::Interval span{t.ts_ns, t.ts_ns + t.dur_ns};
    if (t.launch) hides_.push_back(span);  // a graph has its kernels in it
    if (!t.chosen) return;
    mine_.slices.add(t.lane, t.ts_ns, t.dur_ns);
    if (t.comm) communicates_.push_back(span);
    times_.push_back(
        {t.ts_ns - t.queued_ns, static_cast<std::uint32_t>(t.thread), t.calls == 1, span});
  }

  void range(const read::Range& r) {
    if (r.phase != read::Range::Phase::closed) return;
    mine_.slices.add(r.thread + std::int64_t{kRangeLane}, r.ts_ns, r.dur_ns);
  }

  void busy(const read::Busy& b) {
    mine_.slices.add(b.lane, b.ts_ns, b.dur_ns);
    followed_.from_ns = std::min(followed_.from_ns, b.ts_ns);
    followed_.to_ns = std::max(followed_.to_ns, b.ts_ns + b.dur_ns);
    computes_ = computes_ || !b.unsure;
    hides_.push_back({b.ts_ns, b.ts_ns + b.dur_ns});
  }

  void end() {
    match();
    mine_.slices.finish();
    find_without_line();
    find_exposed();
    calls_ = {};
    times_ = {};
    communicates_ = {};
    hides_ = {};
  }

 private:
  struct Call {
    std::int64_t begin_ns;
    std::int64_t dur_ns = 0;
    std::uint32_t thread;
    std::uint64_t seq = 0;
    std::uint64_t bytes = DrawnCall::kNoBytes;
    std::vector<Arrival>* channel = nullptr;
    Bucket bucket = Bucket::OTHER_COLL;  // of a graph launch, too
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

  // Null if the call is neither a collective nor a message, or nobody else can be known to meet it.
  std::vector<Arrival>* channel_of(const read::Event& e, bool receives) {
    const bool message = e.bucket == Bucket::P2P;
    if (!reading_.arrows || !e.numbered || !e.comm) return nullptr;
    if (message && (!e.peer || (!receives && e.name != "ncclSend"))) return nullptr;
    const std::tuple key(*e.comm, message ? *e.peer : -1, receives);
    if (key == last_key_) return last_channel_;
    last_key_ = key;
    const read::Comm* comm = read::comm_of(rank_, e.comm);
    if (comm == nullptr || !comm->known() || comm->nranks < 2) return last_channel_ = nullptr;
    Channel channel{comm->id, comm->nranks};
    if (message) channel.from = receives ? *e.peer : comm->rank;
    if (message) channel.to = receives ? comm->rank : *e.peer;
    return last_channel_ = &mine_.arrivals[channel];
  }

  void add_rate(const read::Event& e) {
    const std::int64_t window = to_.moved(e.ts_ns) / reading_.window_ns;
    if (window < 0 || window >= kMostWindows || e.bytes == 0) return;
    auto& bytes = mine_.rates[static_cast<std::size_t>(e.bucket)];
    const auto i = static_cast<std::size_t>(window);
    if (bytes.size() <= i) bytes.resize(i + 1);
    bytes[i] += e.bytes;
  }

  // Puts calls and their device times together.
  void match() {
    order(calls_);
    order(times_);
    auto time = times_.begin();
    for (const Call& c : calls_) {
      while (time != times_.end() && kByBegin(*time) < kByBegin(c)) ++time;
      const bool timed = time != times_.end() && kByBegin(*time) == kByBegin(c);
      if (timed && is_copy(c.bucket)) ++with_line_[{c.function, c.bucket}];
      if (mine_.calls.size() == reading_.most_calls || (!timed && c.channel == nullptr)) continue;
      DrawnCall call{.begin_ns = c.begin_ns, .thread = c.thread};
      call.bucket = static_cast<std::uint8_t>(c.bucket);
      call.on_device = timed && time->alone;
      call.receives = c.receives;
      call.message = c.message;
      if (call.on_device) call.bytes = std::min(c.bytes, DrawnCall::kNoBytes);
      if (c.channel != nullptr && (c.channel->empty() || c.channel->back().seq != c.seq)) {
        const run::Interval span =
            call.on_device ? time->on_device : run::Interval{c.begin_ns, c.begin_ns + c.dur_ns};
        c.channel->push_back({c.seq, to_.moved(touched_ns(span.from_ns, span.ns(), c.receives)),
                              order_, static_cast<std::uint32_t>(mine_.calls.size())});
      }
      mine_.calls.push_back(call);
    }
  }

  // Where communication ran on the device and no computation did, as far as that is known.
  void find_exposed() {
    if (!computes_ || communicates_.empty()) return;
    communicates_ = run::joined(std::move(communicates_));
    hides_ = run::joined(std::move(hides_));
    run::Intervals free;
    for (std::size_t i = 1; i < hides_.size(); ++i) {
      free.push_back({hides_[i - 1].to_ns, hides_[i].from_ns});
    }
    mine_.exposed = run::common(run::common(communicates_, free), {followed_});
  }

  // Copies within a device usually have no lines. The ledger has all calls: where it has more timed
  // copies by a function than have lines, and all of one bucket, that is what the others are.
  void find_without_line() {
    if (!all_chosen_ || !rank_.footer || rank_.end == read::End::lost) return;
    std::map<std::pair<text::Kept, Bucket>, std::uint64_t> timed;
    for (const read::Row& row : read::rows_of(rank_)) {
      if (is_copy(row.bucket)) timed[{row.name, row.bucket}] += row.amounts.device_timed;
    }
    std::set<text::Kept> unclear;
    for (const auto& [key, calls] : timed) {
      if (calls <= with_line_[key]) continue;
      const auto& [function, bucket] = key;
      if (!mine_.without_line.try_emplace(function, bucket).second) unclear.insert(function);
    }
    for (const text::Kept& function : unclear) mine_.without_line.erase(function);
  }

  const read::Process& rank_;
  const Placement& to_;
  const Reading& reading_;
  const std::uint32_t order_;
  RankTimeline mine_;
  std::vector<Call> calls_;
  std::vector<Time> times_;
  std::tuple<std::int64_t, std::int64_t, bool> last_key_{-1, -1, false};
  std::vector<Arrival>* last_channel_ = nullptr;
  run::Intervals communicates_;
  run::Intervals hides_;  // computation, and where it is not known
  run::Interval followed_{INT64_MAX, INT64_MIN};
  bool computes_ = false;
  // Timed copies that have a line, of each function and bucket.
  std::map<std::pair<text::Kept, Bucket>, std::uint64_t> with_line_;
  bool all_chosen_ = true;
};

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

std::map<const read::Process*, RankTimeline> read_timelines(
    const run::Lines& lines, const Members& members,
    const std::map<const read::Process*, std::uint32_t>& order, const Reading& reading) {
  std::map<const read::Process*, RankTimeline> all;
  lines.each(
      [&](const read::Process& rank) {
        return TimelineLines(rank, *members.at(&rank).to, reading, order.at(&rank));
      },
      [&](TimelineLines& rank) { all[&rank.rank()] = rank.take(); });
  return all;
}

}  // namespace tprof::trace_export
