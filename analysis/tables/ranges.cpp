#include "tables/ranges.h"

#include <algorithm>

#include "interpose/format/scopes.h"
#include "read/error.h"
#include "steps/rank_steps.h"
#include "tables/rank_calls.h"

namespace tprof::tables {
namespace {

RangeTotal& total_of(std::map<RangeKey, RangeTotal>& ranges, RangeKey key) {
  const auto known = ranges.find(key);
  if (known != ranges.end()) return known->second;
  if (ranges.size() >= RangeTotals::kMaxNames)
    key = {.domain = "", .name = "(other names)", .mark = key.mark};
  return ranges[std::move(key)];
}

// The line of a range comes after those of its thread's calls within it.
void add_inside(const RankCalls& calls, const read::Range& r, RangeTotal& to) {
  for (const std::uint32_t i : calls.since(r.thread, r.ts_ns)) {
    Moved& moved = to.inside[static_cast<std::size_t>(calls.kind(i).bucket)];
    ++moved.calls;
    moved.bytes = read::saturated_sum(moved.bytes, calls.kind(i).bytes);
  }
  to.vague = calls.all ? 0 : 1;
}

// The ranges of a process, which may hold several ranks. A thread's calls need not belong to the
// rank of its device when it pushed the range.
struct ProcessRanges {
  std::optional<RankCalls> calls{};
  std::map<RangeKey, RangeTotal> totals{};
  StartedRanges started{};
  bool added = false;  // to the job's ranges
};

// One for each rank of a process, all with the same ranges.
struct RangesOfRank {
  void call(const read::Event& e) {
    if (!process.calls) process.calls.emplace(rank);
    process.calls->call(e);
  }

  void range(const read::Range& r) {
    using Phase = read::Range::Phase;
    if (r.phase == Phase::started) return process.started.start(r);
    RangeTotal one;
    if (rank.header.rank) one.ranks = {*rank.header.rank};
    one.elements = r.elements;
    one.bytes = r.bytes;
    one.errors = r.error.empty() ? 0 : 1;
    if (r.payload) one.payloads = {1, *r.payload, *r.payload, *r.payload};
    if (!r.color.empty()) one.color = r.color;
    if (r.phase == Phase::mark) {
      one.time.count = 1;
    } else if (r.phase == Phase::ended) {
      if (const auto began_ns = process.started.end(r)) {
        one.time.add(read::not_below_0(r.ts_ns - *began_ns));
        one.apart = 1;
      }
    } else {
      r.phase == Phase::open ? void(++one.open) : one.time.add(read::not_below_0(r.dur_ns));
      if (process.calls) add_inside(*process.calls, r, one);
    }
    total_of(process.totals, {r.domain.value_or(""), r.name, r.phase == Phase::mark, r.category,
                              r.category_name}) += one;
  }

  const read::Process& rank;
  ProcessRanges& process;
};

using Scopes = std::map<RangeKey, std::pair<read::ScopeTotal, std::set<std::int64_t>>>;

// Scopes in the ledger's last row, for further names, may have lines under their own names.
void take_other_names(read::ScopeTotal& scope, const Scopes& scopes, const RangeTotals& totals) {
  for (const auto& [range, told] : totals.ranges) {
    const bool step = range.name.starts_with(std::string(kScopeStep) + " ");
    if (range.domain != kScopeDomain || range.mark || step || scopes.contains(range)) continue;
    scope.count -= std::min(scope.count, told.time.count);
    scope.total_ns -= std::min(scope.total_ns, told.time.total_ns);
  }
}

// Takes the ledgers' figures if the lines show fewer scopes.
void complete(RangeTotals& totals, const Scopes& scopes) {
  std::uint64_t found = 0;
  for (const auto& [key, of] : scopes) {
    auto [scope, ranks] = of;
    if (key.name == kOtherScopes) take_other_names(scope, scopes, totals);
    if (key.name == kOtherScopes && scope.count == 0) continue;
    RangeTotal& range = totals.ranges[key];
    range.ranks.insert(ranks.begin(), ranks.end());
    range.device_timed = scope.device_timed;
    range.device_ns = scope.device_ns;
    if (scope.count <= range.time.count) continue;
    range.beyond = scope.count - range.time.count;
    range.time.set_sums(scope.count, scope.total_ns, scope.max_ns);
    range.elements = std::max(range.elements, scope.elements);
    range.bytes = std::max(range.bytes, scope.bytes);
    range.errors = scope.errors;
    found += range.beyond;
  }
  totals.dropped -= std::min(totals.dropped, found);
}

}  // namespace

void Payloads::add(const Payloads& other) {
  if (other.count == 0) return;
  min = count == 0 ? other.min : std::min(min, other.min);
  max = count == 0 ? other.max : std::max(max, other.max);
  sum += other.sum;
  count += other.count;
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
  beyond += more.beyond;
  if (more.color) color = !color || *color == *more.color ? *more.color : "";
  for (std::size_t b = 0; b < inside.size(); ++b) {
    inside[b].calls += more.inside[b].calls;
    inside[b].bytes = read::saturated_sum(inside[b].bytes, more.inside[b].bytes);
  }
  return *this;
}

std::span<const read::ScopeTotal> scopes_of(const run::Lines& lines, const read::Process& rank) {
  const run::MetadataHistory* history = rank.lane == 0 ? lines.history(rank) : nullptr;
  return history == nullptr ? std::span<const read::ScopeTotal>() : std::span(history->scopes);
}

RangeTotals range_totals(const run::Lines& lines) {
  std::map<const read::Process*, ProcessRanges> processes;  // by first lane
  for (const read::Process* p : lines.job().processes) processes[p - p->lane];
  RangeTotals totals;
  Scopes scopes;
  lines.each(
      [&](const read::Process& rank) {
        return RangesOfRank{rank, processes.at(&rank - rank.lane)};
      },
      [&](const RangesOfRank& of) {
        const read::Process& rank = of.rank;
        for (const read::ScopeTotal& scope : scopes_of(lines, rank)) {
          auto& [total, ranks] = scopes[{.domain = std::string(kScopeDomain),
                                         .name = scope.name,
                                         .category_name = scope.category}];
          read::add(total, scope);
          if (rank.header.rank) ranks.insert(*rank.header.rank);
        }
        if (std::exchange(of.process.added, true)) return;
        for (const auto& [key, more] : of.process.totals) total_of(totals.ranges, key) += more;
        of.process.totals.clear();
        of.process.calls.reset();
        totals.all_lines = totals.all_lines && steps::lines_are_whole(rank);
        if (!rank.footer) return;
        for (const auto& [reason, n] : rank.footer->ranges_dropped) {
          totals.dropped = read::saturated_sum(totals.dropped, n);
        }
      });
  if (!lines.unreadable().empty()) throw read::BadInput(lines.unreadable()[0].reason);
  complete(totals, scopes);
  return totals;
}

}  // namespace tprof::tables
