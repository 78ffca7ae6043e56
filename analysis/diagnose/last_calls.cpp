#include "diagnose/last_calls.h"

#include <algorithm>

namespace tprof::diagnose {
namespace {

using read::Event;
using read::Process;

constexpr std::size_t kMaxOpen = 4096;  // of a group; a damaged file may hold any number
constexpr std::size_t kMaxFailed = 64;

}  // namespace

void LastCalls::call(const Event& e) {
  if (e.unfinished) {
    if (open.size() < kMaxOpen) open.push_back(e);
    return;
  }
  remember(e);
  if (e.failed || !e.comm || !e.collective() || e.seq == UINT64_MAX) return;
  if (e.seq == 0) begun.try_emplace(*e.comm, e.ts_ns);
  auto& [first, end, lines] = numbers[*e.comm];
  first = std::min(first, e.seq);
  end = std::max(end, e.seq + 1);
  ++lines;
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
    return row.amounts.calls != 0 && !read::wants_lines(p, row.bucket);
  };
  return from_ring_ ||
         (p.footer->dropped.empty() && std::ranges::none_of(read::rows_of(p), without_line));
}

void LastCalls::open_range(const read::Range& range) {
  if (ranges.size() < kMaxOpen) ranges.push_back(range);
}

}  // namespace tprof::diagnose
