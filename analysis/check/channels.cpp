#include "check/channels.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "check/calls.h"
#include "check/diagnosis.h"

namespace tprof::check {

namespace {

// Communicator index, sending rank, receiving rank; -1: collectives.
using Name = std::tuple<std::size_t, std::int64_t, std::int64_t>;

ChannelEnd end_of(const Member& m, const ChannelKey& key, const Case& c) {
  return {.member = &m, .calls = &c.calls(*m.process), .key = key};
}

using read::Event;

constexpr std::size_t kMaxOpen = 4096;  // a limit for damaged files
constexpr std::size_t kMaxFailed = 64;

template <typename T>
void keep(std::vector<T>& first, const T& one, std::size_t most) {
  if (first.size() < most) first.push_back(one);
}

// One-sided calls have no counterpart.
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

const RankCalls::Channel& ChannelEnd::numbers() const {
  static const RankCalls::Channel kNone;
  const auto known = calls->channels.find(key);
  return known == calls->channels.end() ? kNone : known->second;
}

const Operation* ChannelEnd::number(std::uint64_t n) const {
  const auto found = std::ranges::lower_bound(all, n, {}, &Operation::seq);
  return found != all.end() && (*found)->seq == n ? *found : nullptr;
}

bool Channel::numbered() const {
  return !messages || !ends[0].member->dumped() || !ends[1].member->dumped() ||
         ends[0].made() == ends[1].made();
}

std::vector<Channel> channels_of(const Case& c) {
  std::map<Name, Channel> channels;
  for (const read::Process* p : c.job.processes) {
    std::map<ChannelKey, std::pair<Channel*, std::size_t>> mine;  // and the index of the rank's end
    for (const auto& [key, numbers] : c.calls(*p).channels) {
      const Membership* in = c.membership(*p, key.comm);
      if (in == nullptr) continue;
      const Member& me = *in->member;
      if (!key.message()) {
        Channel& of = channels[{in->communicator, -1, -1}];
        of.ends.push_back(end_of(me, key, c));
        mine[key] = {&of, of.ends.size() - 1};
        continue;
      }
      const Member* other = member_of(c.communicators[in->communicator], key.peer);
      if (other == nullptr || !c.has_lines(*other->process)) continue;
      const Member& from = key.send ? me : *other;
      const Member& to = key.send ? *other : me;
      Channel& of = channels[{in->communicator, from.comm->rank, to.comm->rank}];
      of.messages = true;
      if (of.ends.empty()) {
        of.ends = {end_of(from, {from.comm->comm, to.comm->rank, true}, c),
                   end_of(to, {to.comm->comm, from.comm->rank, false}, c)};
      }
      mine[key] = {&of, key.send ? 0 : 1};
    }
    if (mine.empty()) continue;
    for (const Operation& o : c.calls(*p).all) {
      const auto of = mine.find(o.channel());
      if (of != mine.end()) of->second.first->ends[of->second.second].all.push_back(&o);
    }
  }
  std::vector<Channel> all;
  for (auto& [name, channel] : channels) {
    channel.communicator = std::get<0>(name);
    for (ChannelEnd& end : channel.ends) {
      // They are unordered if threads share a communicator, and may be duplicated in a damaged
      // file.
      std::ranges::stable_sort(end.all, {}, &Operation::seq);
      const auto twice = std::ranges::unique(end.all, {}, &Operation::seq);
      end.all.erase(twice.begin(), twice.end());
    }
    all.push_back(std::move(channel));
  }
  return all;
}

Fact fact_of(const ChannelEnd& end, const Operation& o, const read::Process& other) {
  const auto group =
      std::ranges::count_if(end.calls->all, [&](const Operation& its) { return its.joins(o); });
  const auto bytes = [&](std::uint64_t seq) {
    const Operation* its = end.number(seq);
    return its == nullptr ? std::nullopt : std::optional(Bytes{its->bytes});
  };
  return {Say::end_of_message,
          {{"who", end.member->process},
           {"function", o.function},
           {"seq", o.seq},
           {"send", o.send},
           {"other", &other},
           {"bytes", Bytes{o.bytes}},
           {"at", Time{end.called_ns(o)}},
           {"group", group > 1 ? std::optional(static_cast<std::uint64_t>(group)) : std::nullopt},
           {"before", o.seq == 0 ? std::nullopt : bytes(o.seq - 1)},
           {"then", bytes(o.seq + 1)}}};
}

bool Operation::all_wait() const {
  constexpr std::string_view kOneWay[] = {"ncclBroadcast", "ncclBcast",   "ncclReduce",
                                          "ncclGather",    "ncclScatter", "ncclSend"};
  return std::ranges::find(kOneWay, std::string_view(function)) == std::end(kOneWay);
}

bool has_all_ends(const read::Process& p) {
  const std::string_view timing = p.header.config.get("TPROF_TIMING");
  return p.end == read::End::dumped || timing == "events" || timing == "cupti";
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
  e.launch = true;  // like a launch, it has no bucket
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
  const std::int64_t called_ns = t.ts_ns - t.queued_ns;
  std::int64_t& of_stream = ended_.try_emplace(t.lane - kDeviceLane, called_ns).first->second;
  of_stream = std::max(of_stream, called_ns);
  // A mixed group has the number of its first call, which may be a message's.
  if (!t.comm || !t.seq || t.name == "ncclSend" || t.name == "ncclRecv" || t.name == kGroupName)
    return;
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
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> groups;  // when each began
  for (Operation& mine : all) {
    const auto ended = ended_.find(mine.stream);
    const std::int64_t began =
        mine.group == 0 ? mine.ts_ns
                        : groups.try_emplace({mine.thread, mine.group}, mine.ts_ns).first->second;
    mine.ended = ended != ended_.end() && began <= ended->second;
  }
  // Everything after the last missing number is known.
  std::map<ChannelKey, std::uint64_t> behind;
  for (auto& [key, channel] : channels) channel.first = channel.calls;
  for (const Operation& mine : all) {
    const auto [before, fresh] = behind.try_emplace(mine.channel(), mine.seq);
    if (fresh || before->second != mine.seq) channels[mine.channel()].first = mine.seq;
    before->second = mine.seq + 1;
  }
  for (const auto& [key, end] : behind) {
    Channel& channel = channels[key];
    if (end != channel.calls) channel.first = channel.calls;  // out of order
  }
  std::ranges::stable_sort(all, {}, &Operation::thread);
  all.shrink_to_fit();
}

std::optional<std::int64_t> RankCalls::entered_ns() const {
  std::optional<std::int64_t> entered;
  for (const Event& e : open) entered = std::max(entered, std::optional(e.ts_ns));
  for (const read::LifeCall& c : open_life) entered = std::max(entered, std::optional(c.ts_ns));
  return entered;
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
  const auto found = std::ranges::find_if(  // usually among the last
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
