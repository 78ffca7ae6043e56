#include "export/rank_timeline.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "interpose/format/ranges.h"

namespace tprof::trace_export {
namespace {

// As many calls and times are kept until they are matched: a rank file of the default quota has
// fewer lines. Where there are more, those that come in other lots than their neighbours in time
// are not matched.
constexpr std::size_t kMostKept = std::size_t{1} << 20;

constexpr auto kByBegin = [](const auto& call) { return std::pair(call.begin_ns, call.thread); };

template <typename T>
void order(std::vector<T>& all) {
  if (!std::ranges::is_sorted(all, {}, kByBegin)) std::ranges::stable_sort(all, {}, kByBegin);
}

// Returns what of `all` is in none of `others`; both are joined.
why::Spans without(const why::Spans& all, const why::Spans& others) {
  why::Spans left;
  auto other = others.begin();
  for (const why::Span& s : all) {
    std::int64_t from = s.from_ns;
    while (other != others.end() && other->to_ns <= from) ++other;
    for (auto o = other; o != others.end() && o->from_ns < s.to_ns; ++o) {
      if (from < o->from_ns) left.push_back({from, o->from_ns});
      from = std::max(from, o->to_ns);
    }
    if (from < s.to_ns) left.push_back({from, s.to_ns});
  }
  return left;
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

TimelineLines::TimelineLines(const read::Process& rank, const Reading& reading, const Meets& meets,
                             std::uint32_t order)
    : rank_(rank), reading_(reading), meets_(meets) {
  mine_.order = order;
}

// Returns a number of this rank's.
std::uint32_t TimelineLines::channel_of(const read::Event& e) {
  const std::optional<End> end = reading_.arrows ? end_of(e) : std::nullopt;
  if (!end) return kNoChannel;
  const std::tuple key(*e.comm, end->peer, end->receives);
  if (key == last_key_) return last_channel_;
  last_key_ = key;
  const auto [at, fresh] = numbers_.try_emplace(key, kNoChannel);
  if (fresh) {
    const read::Comm* comm = read::comm_of(rank_, e.comm);
    const std::uint32_t number = comm == nullptr ? kNoChannel : meets_.comm_of(*comm);
    if (number != kNoChannel) {
      at->second = static_cast<std::uint32_t>(mine_.arrivals.size());
      mine_.arrivals.push_back({end->channel(number, comm->rank)});
    }
  }
  return last_channel_ = at->second;
}

void TimelineLines::call(const read::Event& e) {
  all_chosen_ = all_chosen_ && e.chosen;
  if (!e.unfinished && e.chosen) mine_.slices.add(e.thread, e.ts_ns, e.dur_ns);
  if (e.launch || e.unfinished || e.failed || e.captured || !e.chosen) return;
  if (calls_.size() >= kMostKept) match();
  mine_.last_ns = std::max(mine_.last_ns, e.ts_ns);
  calls_.push_back({e.ts_ns, e.dur_ns, static_cast<std::uint32_t>(e.thread), channel_of(e), e.seq,
                    e.bytes, e.bucket, e.bucket == Bucket::P2P && e.name == "ncclRecv", e.name});
}

void TimelineLines::launch(const read::Event& e) {
  mine_.slices.add(e.thread, e.ts_ns, e.dur_ns);
  if (e.unfinished) return;
  if (calls_.size() >= kMostKept) match();
  calls_.push_back({.begin_ns = e.ts_ns,
                    .dur_ns = e.dur_ns,
                    .thread = static_cast<std::uint32_t>(e.thread),
                    .bytes = DrawnCall::kNoBytes});
}

void TimelineLines::device_time(const read::DeviceTime& t) {
  const why::Span span{t.ts_ns, t.ts_ns + t.dur_ns};
  if (t.chosen) mine_.slices.add(t.lane, t.ts_ns, t.dur_ns);
  if (t.launch) hides_.push_back(span);  // a graph has its kernels in it
  if (!t.chosen) return;
  if (t.comm) communicates_.push_back(span);
  if (times_.size() >= kMostKept) match();
  times_.push_back(
      {t.ts_ns - t.queued_ns, static_cast<std::uint32_t>(t.thread), t.calls == 1, span});
}

void TimelineLines::range(const read::Range& r) {
  if (r.phase != read::Range::Phase::closed) return;
  mine_.slices.add(r.thread + std::int64_t{kRangeLane}, r.ts_ns, r.dur_ns);
}

void TimelineLines::busy(const read::Busy& b) {
  mine_.slices.add(b.lane, b.ts_ns, b.dur_ns);
  followed_.from_ns = std::min(followed_.from_ns, b.ts_ns);
  followed_.to_ns = std::max(followed_.to_ns, b.ts_ns + b.dur_ns);
  computes_ = computes_ || !b.unsure;
  hides_.push_back({b.ts_ns, b.ts_ns + b.dur_ns});
}

// Puts calls and their device times together, and forgets them.
void TimelineLines::match() {
  order(calls_);
  order(times_);
  auto time = times_.begin();
  for (const Call& c : calls_) {
    while (time != times_.end() && kByBegin(*time) < kByBegin(c)) ++time;
    const bool timed = time != times_.end() && kByBegin(*time) == kByBegin(c);
    if (timed && is_copy(c.bucket)) ++with_line_[{c.function, c.bucket}];
    const bool has_arrow = c.channel != kNoChannel;
    const bool kept = mine_.calls.size() < reading_.most_calls &&
                      (mine_.calls.empty() || kByBegin(mine_.calls.back()) <= kByBegin(c));
    if (!kept || (!timed && !has_arrow)) continue;
    DrawnCall call{.begin_ns = c.begin_ns, .thread = c.thread};
    call.bucket = static_cast<std::uint8_t>(c.bucket);
    call.on_device = timed && time->alone;
    call.receives = c.receives;
    if (call.on_device) call.bytes = std::min(c.bytes, DrawnCall::kNoBytes);
    if (has_arrow) {
      RankTimeline::Arrivals& of = mine_.arrivals[c.channel];
      call.message = of.channel.from != Channel::kAll;
      const why::Span span =
          call.on_device ? time->on_device : why::Span{c.begin_ns, c.begin_ns + c.dur_ns};
      of.all.push_back({c.seq, touched_ns(span.from_ns, span.ns(), c.receives),
                        static_cast<std::uint32_t>(mine_.calls.size())});
    }
    mine_.calls.push_back(call);
  }
  calls_.clear();
  times_.clear();
}

// Where communication ran on the device and no computation did, as far as that is known.
void TimelineLines::find_exposed() {
  if (!computes_ || communicates_.empty()) return;
  why::join(communicates_);
  why::join(hides_);
  mine_.exposed = why::common(without(communicates_, hides_), {followed_});
}

// Copies within a device usually have no lines. The ledger has all calls: where it has more timed
// copies by a function than have lines, and all of one bucket, that is what the others are.
void TimelineLines::find_without_line() {
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

void TimelineLines::end() {
  match();
  mine_.slices.finish();
  find_without_line();
  calls_ = {};
  times_ = {};
  find_exposed();
  communicates_ = {};
  hides_ = {};
  for (RankTimeline::Arrivals& of : mine_.arrivals) {
    const auto by_seq = std::mem_fn(&Arrival::seq);
    if (!std::ranges::is_sorted(of.all, {}, by_seq)) std::ranges::stable_sort(of.all, {}, by_seq);
    const auto same = [](const Arrival& a, const Arrival& b) { return a.seq == b.seq; };
    of.all.erase(std::unique(of.all.begin(), of.all.end(), same), of.all.end());
  }
}

}  // namespace tprof::trace_export
