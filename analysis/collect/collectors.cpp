#include "collect/collectors.h"

#include <algorithm>

#include "interpose/format/line_kinds.h"

namespace tprof::collect {
namespace {

using read::Event;
using read::Process;

constexpr std::size_t kMaxOpen = 4096;  // of a group; a damaged file may hold any number
constexpr std::size_t kMaxFailed = 64;
constexpr std::size_t kMaxDecreased = 8;

}  // namespace

void ReturnedCalls::call(const Event& e) {
  if (!e.unfinished && !e.failed && e.comm && e.collective()) numbers[*e.comm].add(e.seq);
}

const Intervals& ReturnedCalls::collectives(std::int64_t comm) const {
  static const Intervals kNone;
  const auto found = numbers.find(comm);
  return found == numbers.end() ? kNone : found->second;
}

void LastCalls::call(const Event& e) {
  if (e.unfinished) {
    if (open.size() < kMaxOpen) open.push_back(e);
    return;
  }
  remember(e);
  if (e.collective() && e.seq == 0) begun.try_emplace(*e.comm, e.ts_ns);
}

void LastCalls::last_call(const Event& e) {
  remember(e);
  from_ring_ = true;
}

void LastCalls::life(const read::LifeCall& c) {
  if (c.unfinished) {
    if (open_life.size() < kMaxOpen) open_life.push_back(c);
    return;
  }
  if (c.failed() && failed_life.size() < kMaxFailed) failed_life.push_back(c);
  Event e;
  e.name = c.name;
  e.launch = true;  // it has no bucket either
  e.ts_ns = c.ts_ns;
  e.dur_ns = c.dur_ns;
  e.thread = c.thread;
  remember(e);
}

void LastCalls::remember(const Event& e) {
  if (!last || last->ts_ns <= e.ts_ns) last = e;
  if (e.launch || e.failed || !e.comm || !e.collective() || rank_.end == read::End::closed) return;
  const auto [of_comm, fresh] = last_collective.try_emplace(*e.comm, e);
  if (!fresh && of_comm->second.seq <= e.seq) of_comm->second = e;
}

bool LastCalls::knows_last() const {
  const Process& p = rank_;
  if (!last || !p.footer || p.end == read::End::partial) return false;
  const auto without_line = [&](const read::Row& row) {
    return row.amounts.calls != 0 && !wants_lines(p, row.bucket);
  };
  return from_ring_ ||
         (p.footer->dropped.empty() && std::ranges::none_of(read::rows_of(p), without_line));
}

void OpenRanges::open_range(const read::Range& range) {
  if (ranges.size() < kMaxOpen) ranges.push_back(range);
}

void DecreasedLedgers::metadata(const read::Line& line, const Process& so_far) {
  if (!is_line(line.text, LineKind::ledger)) return;
  if (before_ && so_far.ledger) compare(*before_, *so_far.ledger, line.offset);
  before_ = so_far.ledger;
}

void DecreasedLedgers::compare(const read::Ledger& before, const read::Ledger& now,
                               std::uint64_t offset) {
  std::map<Counted, std::uint64_t> counts;
  const auto each = [](const read::Ledger& ledger, const auto& see) {
    for (const read::Collectives& c : ledger.collectives) see(Counted{.comm = c.comm}, c.count);
    for (const read::Row& r : ledger.rows) {
      see(Counted{r.name, r.dtype, r.comm.value_or(-1), r.bytes_class, r.mode}, r.amounts.calls);
    }
  };
  each(now, [&](const Counted& what, std::uint64_t n) { counts[what] += n; });
  each(before, [&](const Counted& what, std::uint64_t n) {
    if (n <= counts[what] || places.size() == kMaxDecreased) return;
    places.push_back({offset, what, counts[what], n});
  });
}

bool wants_lines(const Process& p, Bucket bucket) {
  if (kBuckets[static_cast<std::size_t>(bucket)].lines) return true;
  const auto events = p.header.config->find("TPROF_EVENTS");
  return events != p.header.config->end() && events->second == "all";
}

}  // namespace tprof::collect
