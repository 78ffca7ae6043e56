#include "stats/ranges.h"

#include <algorithm>
#include <memory>

#include "read/error.h"
#include "run/lines.h"
#include "stats/scope_totals.h"
#include "stats/started_ranges.h"

namespace tprof::stats {
namespace {

// Ranges of further threads hold no calls.
constexpr std::size_t kMaxThreads = 1024;
constexpr std::size_t kMaxPieces = 4096;

// Consecutive calls of one thread, from the first to the last of them.
struct Piece {
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
  Inside calls{};
};

// The line of a range comes after those of its thread's calls within it, so its calls are those
// since its start. They are merged into one piece, for the range around it.
class ThreadCalls {
 public:
  void call(std::int64_t ts_ns, Bucket bucket, std::uint64_t bytes) {
    if (pieces_.size() == kMaxPieces) coarsen();
    Piece& p = pieces_.emplace_back(Piece{ts_ns, ts_ns, {}});
    p.calls[static_cast<std::size_t>(bucket)] = {1, bytes};
  }

  // Adds the calls since `start_ns`. Returns false if there may have been more.
  bool since(std::int64_t start_ns, Inside& inside) const {
    auto p = pieces_.rbegin();
    for (; p != pieces_.rend() && p->first_ns >= start_ns; ++p) add(inside, p->calls);
    return p == pieces_.rend() || p->last_ns < start_ns;
  }

  bool close(std::int64_t start_ns, Inside& inside) {
    const bool exact = since(start_ns, inside);
    const auto from =
        std::ranges::find_if(pieces_, [&](const Piece& p) { return p.first_ns >= start_ns; });
    if (from == pieces_.end()) return exact;
    *from = {from->first_ns, pieces_.back().last_ns, inside};
    pieces_.erase(from + 1, pieces_.end());
    return exact;
  }

 private:
  // Merges the older half in pairs. A range that begins within a pair is then not exact.
  void coarsen() {
    const std::size_t half = kMaxPieces / 2;
    for (std::size_t i = 0; i < half; i += 2) {
      Piece& p = pieces_[i / 2] = pieces_[i];
      p.last_ns = pieces_[i + 1].last_ns;
      add(p.calls, pieces_[i + 1].calls);
    }
    pieces_.erase(pieces_.begin() + half / 2, pieces_.begin() + half);
  }

  std::vector<Piece> pieces_;
};

RangeTotal& total_of(std::map<RangeKey, RangeTotal>& ranges, RangeKey key) {
  const auto known = ranges.find(key);
  if (known != ranges.end()) return known->second;
  if (ranges.size() >= RangeTotals::kMaxNames)
    key = {.domain = "", .name = "(other names)", .mark = key.mark};
  return ranges[std::move(key)];
}

void add_color(RangeTotal& total, const std::string& color) {
  total.color = !total.color || *total.color == color ? color : "";
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
  RangeTotal& total = total_of(
      process.totals,
      {r.domain ? *r.domain : "", r.name, r.phase == Phase::mark, r.category, r.category_name});
  total.ranks.insert(rank);
  if (r.payload) total.payloads.add(*r.payload);
  total.elements = read::saturated_sum(total.elements, r.elements);
  total.bytes = read::saturated_sum(total.bytes, r.bytes);
  total.errors += r.error.empty() ? 0 : 1;
  if (!r.color.empty()) add_color(total, r.color);
  const auto thread = process.threads.find(r.thread);
  const bool has_calls = thread != process.threads.end();
  Inside inside{};
  bool exact = !process.beyond;
  switch (r.phase) {
    case Phase::mark:
      ++total.time.count;
      return;
    case Phase::ended: {
      const auto began_ns = process.started.end(r);
      if (!began_ns) return;
      total.time.add(not_below_0(r.ts_ns - *began_ns));
      ++total.apart;
      return;
    }
    case Phase::open:
      ++total.open;
      if (has_calls) exact = thread->second.since(r.ts_ns, inside) && exact;
      break;
    default:
      total.time.add(not_below_0(r.dur_ns));
      if (has_calls) exact = thread->second.close(r.ts_ns, inside) && exact;
  }
  add(total.inside, inside);
  total.vague += exact ? 0 : 1;
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
    process.threads[e.thread].call(e.ts_ns, e.bucket, e.bytes);
  }
  void range(const read::Range& r) { add_range(process, r, rank_.header.rank.value_or(-1)); }

  const read::Process& rank_;
  ProcessRanges& process;
};

void merge(RangeTotals& to, const ProcessRanges& process) {
  for (const auto& [key, more] : process.totals) {
    RangeTotal& total = total_of(to.ranges, key);
    total.time.add(more.time);
    total.open += more.open;
    total.apart += more.apart;
    total.vague += more.vague;
    total.ranks.insert(more.ranks.begin(), more.ranks.end());
    total.payloads.add(more.payloads);
    total.elements = read::saturated_sum(total.elements, more.elements);
    total.bytes = read::saturated_sum(total.bytes, more.bytes);
    total.errors += more.errors;
    if (more.color) add_color(total, *more.color);
    add(total.inside, more.inside);
  }
}

}  // namespace

void add(Inside& to, const Inside& more) {
  for (std::size_t b = 0; b < to.size(); ++b) {
    to[b].calls += more[b].calls;
    to[b].bytes = read::saturated_sum(to[b].bytes, more[b].bytes);
  }
}

void Payloads::add(long double payload) {
  add({.count = 1, .sum = payload, .min = payload, .max = payload});
}

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
    merge(totals, *ranges);
    ranges.reset();
    totals.all_lines = totals.all_lines && p->footer && p->footer->dropped.empty();
    if (!p->footer) continue;
    for (const auto& [reason, n] : p->footer->ranges_dropped) {
      totals.dropped = read::saturated_sum(totals.dropped, n);
    }
  }
  scopes.complete(totals);
  return totals;
}

}  // namespace tprof::stats
