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
constexpr std::size_t kMaxRuns = 8;  // of a channel: sizes repeat, or alternate between a few

}  // namespace

void Channel::add(std::uint64_t seq, std::uint64_t of_bytes) {
  bytes += of_bytes;
  if (seq != calls) {  // of several threads, or lines are missing
    calls = std::max(calls, seq + 1);
    lately.clear();
    return;
  }
  ++calls;
  if (!lately.empty() && lately.back().bytes == of_bytes) {
    ++lately.back().calls;
    return;
  }
  if (lately.size() == kMaxRuns) lately.erase(lately.begin());
  lately.push_back({.bytes = of_bytes, .calls = 1});
}

std::optional<std::uint64_t> Channel::bytes_until(std::uint64_t n) const {
  if (n > calls) return std::nullopt;
  std::uint64_t behind = calls - n;
  std::uint64_t until = bytes;
  for (auto run = lately.rbegin(); run != lately.rend() && behind != 0; ++run) {
    const std::uint64_t of_run = std::min(behind, run->calls);
    until -= of_run * run->bytes;
    behind -= of_run;
  }
  return behind == 0 ? std::optional(until) : std::nullopt;
}

std::optional<std::uint64_t> Channel::bytes_of(std::uint64_t n) const {
  const auto before = bytes_until(n);
  const auto with = bytes_until(n + 1);
  return before && with ? std::optional(*with - *before) : std::nullopt;
}

void ReturnedCalls::call(const Event& e) {
  if (e.unfinished || !e.comm) return;
  if (e.failed) {
    refused.insert(*e.comm);
  } else if (e.collective()) {
    numbers[*e.comm].add(e.seq);
  } else if (e.numbered && (e.name == "ncclSend" || e.name == "ncclRecv")) {  // not one-sided ones
    channels[{*e.comm, e.peer.value_or(-1), e.name == "ncclSend"}].add(e.seq, e.bytes);
  }
}

const Intervals& ReturnedCalls::collectives(std::int64_t comm) const {
  static const Intervals kNone;
  const auto found = numbers.find(comm);
  return found == numbers.end() ? kNone : found->second;
}

Channel ReturnedCalls::channel(const ChannelKey& key) const {
  const auto found = channels.find(key);
  return found == channels.end() ? Channel{} : found->second;
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
  if (e.launch || e.failed || !e.comm || rank_.end == read::End::closed) return;
  if (e.collective()) {
    const auto [of_comm, fresh] = last_collective.try_emplace(*e.comm, e);
    if (!fresh && of_comm->second.seq <= e.seq) of_comm->second = e;
  } else {
    std::uint64_t& n = sent_or_received[{*e.comm, e.peer.value_or(-1), e.name == "ncclSend"}];
    n = std::max(n, e.seq + 1);
  }
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
