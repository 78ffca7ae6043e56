#include "check/rank_calls.h"

#include <algorithm>

#include "check/calls.h"

namespace tprof::check {
namespace {

using read::Event;

constexpr std::size_t kMaxOpen = 4096;  // of a group; a damaged file may hold any number
constexpr std::size_t kMaxFailed = 64;

template <typename T>
void keep(std::vector<T>& first, const T& one, std::size_t most) {
  if (first.size() < most) first.push_back(one);
}

// One-sided calls have no other end.
bool counts(const Event& e) {
  const bool message = e.peer && (e.name == "ncclSend" || e.name == "ncclRecv");
  return e.numbered && e.comm && !e.failed && (e.collective() || message);
}

Operation operation(const Event& e, std::int64_t stream) {
  return {.function = e.name,
          .ts_ns = e.ts_ns,
          .bytes = e.bytes,
          .seq = e.seq,
          .comm = static_cast<std::int32_t>(*e.comm),
          .peer = static_cast<std::int32_t>(e.collective() ? ChannelKey::kEverybody : *e.peer),
          .thread = static_cast<std::int32_t>(e.thread),
          .stream = static_cast<std::int32_t>(stream),
          .group = static_cast<std::int32_t>(e.group),
          .print = static_cast<std::uint32_t>(fingerprint(e)),
          .send = e.name == "ncclSend"};
}

}  // namespace

bool Operation::all_wait() const {
  constexpr std::string_view kOneWay[] = {"ncclBroadcast", "ncclBcast",   "ncclReduce",
                                          "ncclGather",    "ncclScatter", "ncclSend"};
  return std::ranges::find(kOneWay, std::string_view(function)) == std::end(kOneWay);
}

bool has_all_ends(const read::Process& p) {
  const auto timing = p.header.config->find("TPROF_TIMING");
  return p.end == read::End::dumped || (timing != p.header.config->end() &&
                                        (timing->second == "events" || timing->second == "cupti"));
}

RankCalls::RankCalls(const read::Process& rank, std::size_t most) : rank_(rank), most_(most) {
  for (const read::Collectives& c : read::collectives_of(rank)) {
    if (c.ended) comms[c.comm].ended = c.ended;
  }
}

void RankCalls::call(const Event& e) {
  if (e.failed && e.comm) comms[*e.comm].refused = true;
  if (counts(e) && !(e.collective() && rank_.end == read::End::closed)) {
    const Operation mine = operation(e, e.stream.value_or(Operation::kNoStream));
    Channel& channel = channels[mine.channel()];
    channel.calls = std::max(channel.calls, mine.seq + 1);
    channel.captured = channel.captured || e.captured;
    if (!e.captured && all.size() < most_) {
      all.push_back(mine);
    } else if (!e.captured) {
      all[oldest_++ % most_] = mine;
    }
  }
  if (e.unfinished) return keep(open, e, kMaxOpen);
  remember(e);
  if (e.failed || !e.comm || !e.collective() || e.seq == UINT64_MAX) return;
  OnComm& on = comms[*e.comm];
  if (e.seq == 0 && !on.begun_ns) on.begun_ns = e.ts_ns;
  on.first = std::min(on.first, e.seq);
  on.end = std::max(on.end, e.seq + 1);
  ++on.lines;
}

void RankCalls::last_call(const Event& e) {
  remember(e);
  from_ring_ = true;
  if (!counts(e) || of_ring_.size() >= most_) return;
  of_ring_.push_back(operation(e, Operation::kNoStream));
  Channel& channel = channels[of_ring_.back().channel()];
  channel.in_ring = true;
  channel.captured = channel.captured || e.captured;
}

void RankCalls::life(const read::LifeCall& c) {
  if (c.unfinished) return keep(open_life, c, kMaxOpen);
  if (c.failed()) keep(failed_life, c, kMaxFailed);
  Event e;
  e.name = c.name;
  e.launch = true;  // it has no bucket either
  e.ts_ns = c.ts_ns;
  e.dur_ns = c.dur_ns;
  e.thread = c.thread;
  remember(e);
}

void RankCalls::remember(const Event& e) {
  if (!last || last->ts_ns <= e.ts_ns) last = e;
  if (e.launch || e.failed || !e.comm || !e.collective() || rank_.end == read::End::closed) return;
  std::optional<Event>& of_comm = comms[*e.comm].last;
  if (!of_comm || of_comm->seq <= e.seq) of_comm = e;
}

void RankCalls::range(const read::Range& range) {
  if (range.left_open()) keep(ranges, range, kMaxOpen);
}

void RankCalls::device_time(const read::DeviceTime& t) {
  if (!t.comm || !t.seq || t.name == "ncclSend" || t.name == "ncclRecv") return;
  std::optional<std::uint64_t>& ended = comms[*t.comm].ended;
  ended = std::max(ended.value_or(0), *t.seq + t.calls);
}

void RankCalls::end() {
  for (const Operation& mine : of_ring_) {
    Channel& channel = channels[mine.channel()];
    if (mine.seq < channel.calls) continue;
    channel.calls = mine.seq + 1;
    if (!channel.captured) all.push_back(mine);
  }
  of_ring_ = {};
  std::ranges::stable_sort(all, {}, &Operation::ts_ns);
  // All that comes behind a number that is missing is known, and no more.
  std::map<ChannelKey, std::uint64_t> behind;
  for (auto& [key, channel] : channels) channel.first = channel.calls;
  for (const Operation& mine : all) {
    const auto [before, fresh] = behind.try_emplace(mine.channel(), mine.seq);
    if (fresh || before->second != mine.seq) channels[mine.channel()].first = mine.seq;
    before->second = mine.seq + 1;
  }
  for (const auto& [key, end] : behind) {
    Channel& channel = channels[key];
    if (end != channel.calls) channel.first = channel.calls;  // in no order
  }
  std::ranges::stable_sort(all, {}, &Operation::thread);
  all.shrink_to_fit();
}

bool RankCalls::knows_last() const {
  if (!last || !rank_.footer || rank_.end == read::End::partial) return false;
  const auto without_line = [&](const read::Row& row) {
    return row.amounts.calls != 0 && !read::wants_lines(rank_, row.bucket);
  };
  return from_ring_ || (rank_.footer->dropped.empty() &&
                        std::ranges::none_of(read::rows_of(rank_), without_line));
}

std::optional<std::uint64_t> RankCalls::calls(const ChannelKey& key) const {
  const auto channel = channels.find(key);
  const bool made = channel != channels.end();
  const auto& footer = rank_.footer;
  const bool known = footer && !footer->dropped.contains("ring") && !on(key.comm).refused &&
                     ((made && channel->second.in_ring) || footer->dropped.empty());
  return known ? std::optional(made ? channel->second.calls : 0) : std::nullopt;
}

const RankCalls::OnComm& RankCalls::on(std::int64_t comm) const {
  static const OnComm kNone;
  const auto known = comms.find(comm);
  return known == comms.end() ? kNone : known->second;
}

const Operation* RankCalls::find(const ChannelKey& key, std::uint64_t seq) const {
  const auto found = std::ranges::find_if(  // mostly one of the last
      all.rbegin(), all.rend(),
      [&](const Operation& o) { return o.seq == seq && o.channel() == key; });
  return found == all.rend() ? nullptr : &*found;
}

bool RankCalls::is_through(std::int64_t comm, std::uint64_t seq) const {
  return on(comm).ended.value_or(0) > seq;
}

bool RankCalls::is_not_through(std::int64_t comm, std::uint64_t seq) const {
  const bool any =
      std::ranges::any_of(comms, [](const auto& c) { return c.second.ended.has_value(); });
  return has_all_ends(rank_) && any && on(comm).ended.value_or(0) == seq;
}

}  // namespace tprof::check
