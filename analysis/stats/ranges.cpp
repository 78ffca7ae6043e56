#include "stats/ranges.h"

#include <algorithm>
#include <memory>

#include "read/error.h"
#include "run/lines.h"
#include "stats/scope_totals.h"
#include "stats/started_ranges.h"
#include "steps/rank_steps.h"

namespace tprof::stats {
namespace {

// Ranges of further threads hold no calls.
constexpr std::size_t kMaxThreads = 1024;
constexpr std::size_t kMaxCalls = std::size_t{1} << 20;  // of a thread: the last ones

struct ThreadCall {
  std::int64_t ts_ns = 0;
  std::uint64_t bytes = 0;
  Bucket bucket = Bucket::ALLGATHER;
};

// The line of a range comes after those of its thread's calls within it, so its calls are those
// since its start.
struct ThreadCalls {
  void call(const ThreadCall& c) {
    if (calls.size() == kMaxCalls) {
      const auto half = calls.begin() + kMaxCalls / 2;
      gone_ns = std::prev(half)->ts_ns;
      calls.erase(calls.begin(), half);
    }
    calls.push_back(c);
  }
  // Returns false if there may have been more.
  bool since(std::int64_t start_ns, Inside& inside) const {
    for (auto c = calls.rbegin(); c != calls.rend() && c->ts_ns >= start_ns; ++c) {
      Moved& moved = inside[static_cast<std::size_t>(c->bucket)];
      ++moved.calls;
      moved.bytes = read::saturated_sum(moved.bytes, c->bytes);
    }
    return start_ns > gone_ns;
  }

  std::vector<ThreadCall> calls;
  std::int64_t gone_ns = INT64_MIN;  // up to then
};

RangeTotal& total_of(std::map<RangeKey, RangeTotal>& ranges, RangeKey key) {
  const auto known = ranges.find(key);
  if (known != ranges.end()) return known->second;
  if (ranges.size() >= RangeTotals::kMaxNames)
    key = {.domain = "", .name = "(other names)", .mark = key.mark};
  return ranges[std::move(key)];
}

// The ranges of a process, which may be several ranks. A thread's calls need not belong to the rank
// whose device it had when it pushed the range.
struct ProcessRanges {
  std::map<std::int64_t, ThreadCalls> threads;
  std::map<RangeKey, RangeTotal> totals;
  StartedRanges started;
  bool beyond = false;  // there were too many threads
};

void add_range(ProcessRanges& process, const read::Range& r, std::int64_t rank) {
  using Phase = read::Range::Phase;
  if (r.phase == Phase::started) {
    process.started.start(r);
    return;
  }
  RangeTotal one;
  one.ranks = {rank};
  one.elements = r.elements;
  one.bytes = r.bytes;
  one.errors = r.error.empty() ? 0 : 1;
  if (r.payload) one.payloads = {1, *r.payload, *r.payload, *r.payload};
  if (!r.color.empty()) one.color = r.color;
  const auto find_inside = [&] {
    const auto thread = process.threads.find(r.thread);
    const bool whole = thread == process.threads.end() || thread->second.since(r.ts_ns, one.inside);
    one.vague = whole && !process.beyond ? 0 : 1;
  };
  if (r.phase == Phase::mark) {
    one.time.count = 1;
  } else if (r.phase == Phase::ended) {
    if (const auto began_ns = process.started.end(r)) {
      one.time.add(not_below_0(r.ts_ns - *began_ns));
      one.apart = 1;
    }
  } else {
    r.phase == Phase::open ? void(++one.open) : one.time.add(not_below_0(r.dur_ns));
    find_inside();
  }
  total_of(process.totals, {r.domain.value_or(""), r.name, r.phase == Phase::mark, r.category,
                            r.category_name}) += one;
}

// Every rank of a process has one of these, all with the same ranges.
struct RangesOfRank {
  RangesOfRank(const read::Process& rank, ProcessRanges& of) : rank_(rank), process(of) {}

  void call(const read::Event& e) {
    if (e.unfinished || e.captured || e.failed) return;
    if (!process.threads.contains(e.thread) && process.threads.size() == kMaxThreads) {
      process.beyond = true;
      return;
    }
    process.threads[e.thread].call({e.ts_ns, e.bytes, e.bucket});
  }
  void range(const read::Range& r) { add_range(process, r, rank_.header.rank.value_or(-1)); }

  const read::Process& rank_;
  ProcessRanges& process;
};

}  // namespace

void Payloads::add(const Payloads& other) {
  if (other.count == 0) return;
  min = count == 0 ? other.min : std::min(min, other.min);
  max = count == 0 ? other.max : std::max(max, other.max);
  sum += other.sum;
  count += other.count;
}

long double Payloads::mean() const {
  return count == 0 ? 0 : sum / static_cast<long double>(count);
}

RangeTotal& RangeTotal::operator+=(const RangeTotal& more) {
  time.add(more.time);
  open += more.open;
  apart += more.apart;
  vague += more.vague;
  ranks.insert(more.ranks.begin(), more.ranks.end());
  payloads.add(more.payloads);
  elements = read::saturated_sum(elements, more.elements);
  bytes = read::saturated_sum(bytes, more.bytes);
  errors += more.errors;
  if (more.color) color = !color || *color == *more.color ? *more.color : "";
  for (std::size_t b = 0; b < inside.size(); ++b) {
    inside[b].calls += more.inside[b].calls;
    inside[b].bytes = read::saturated_sum(inside[b].bytes, more.inside[b].bytes);
  }
  return *this;
}

RangeTotals range_totals(const run::Lines& lines) {
  std::map<const read::Process*, std::shared_ptr<ProcessRanges>> processes;  // by first lane
  for (const read::Process* p : lines.job().processes) {
    auto& process = processes[p - p->lane];
    if (process == nullptr) process = std::make_shared<ProcessRanges>();
  }
  const auto ranks = lines.each([&](const read::Process& rank) {
    return RangesOfRank(rank, *processes.at(&rank - rank.lane));
  });
  if (!lines.unreadable().empty()) throw read::BadInput(lines.unreadable()[0].reason);
  RangeTotals totals;
  ScopeTotals scopes;
  for (const read::Process* p : lines.job().processes) {
    if (ranks.of(p) == nullptr) continue;
    scopes.add(*p, scopes_of(lines, *p));
    auto& ranges = processes[p - p->lane];
    if (ranges == nullptr) continue;  // another rank of the process was here
    for (const auto& [key, more] : ranges->totals) total_of(totals.ranges, key) += more;
    ranges.reset();
    totals.all_lines = totals.all_lines && steps::lines_are_whole(*p);
    if (!p->footer) continue;
    for (const auto& [reason, n] : p->footer->ranges_dropped) {
      totals.dropped = read::saturated_sum(totals.dropped, n);
    }
  }
  scopes.complete(totals);
  return totals;
}

}  // namespace tprof::stats
