#include "diagnose/operations.h"

#include <algorithm>

#include "diagnose/calls.h"

namespace tprof::diagnose {
namespace {

using read::Event;

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

Operations::Operations(const read::Process& rank, std::size_t most) : rank_(rank), most_(most) {
  for (const read::Collectives& c : read::collectives_of(rank)) {
    if (c.ended) through_[c.comm] = *c.ended;
  }
}

void Operations::call(const Event& e) {
  if (e.failed && e.comm) refused.insert(*e.comm);
  if (!counts(e) || (e.collective() && rank_.end == read::End::closed)) return;
  const Operation mine = operation(e, e.stream.value_or(Operation::kNoStream));
  Channel& channel = channels[mine.channel()];
  channel.calls = std::max(channel.calls, mine.seq + 1);
  channel.captured = channel.captured || e.captured;
  if (e.captured) return;
  if (all.size() < most_) {
    all.push_back(mine);
  } else {
    all[oldest_++ % most_] = mine;
  }
}

void Operations::last_call(const Event& e) {
  if (counts(e) && of_ring_.size() < most_) {
    of_ring_.push_back(operation(e, Operation::kNoStream));
    Channel& channel = channels[of_ring_.back().channel()];
    channel.in_ring = true;
    channel.captured = channel.captured || e.captured;
  }
}

void Operations::device_time(const read::DeviceTime& t) {
  if (!t.comm || !t.seq || t.name == "ncclSend" || t.name == "ncclRecv") return;
  std::uint64_t& behind = through_[*t.comm];
  behind = std::max(behind, *t.seq + t.calls);
}

void Operations::end() {
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
    const auto [last, fresh] = behind.try_emplace(mine.channel(), mine.seq);
    if (fresh || last->second != mine.seq) channels[mine.channel()].first = mine.seq;
    last->second = mine.seq + 1;
  }
  for (const auto& [key, end] : behind) {
    Channel& channel = channels[key];
    if (end != channel.calls) channel.first = channel.calls;  // in no order
  }
  std::ranges::stable_sort(all, {}, &Operation::thread);
  all.shrink_to_fit();
}

std::optional<std::uint64_t> Operations::calls(const ChannelKey& key) const {
  const auto channel = channels.find(key);
  const bool made = channel != channels.end();
  const auto& footer = rank_.footer;
  const bool known = footer && !footer->dropped.contains("ring") && !refused.contains(key.comm) &&
                     ((made && channel->second.in_ring) || footer->dropped.empty());
  return known ? std::optional(made ? channel->second.calls : 0) : std::nullopt;
}

const Operation* Operations::find(const ChannelKey& key, std::uint64_t seq) const {
  const auto found = std::ranges::find_if(  // mostly one of the last
      all.rbegin(), all.rend(),
      [&](const Operation& o) { return o.seq == seq && o.channel() == key; });
  return found == all.rend() ? nullptr : &*found;
}

std::optional<std::uint64_t> Operations::ended(std::int64_t comm) const {
  const auto behind = through_.find(comm);
  return behind == through_.end() ? std::nullopt : std::optional(behind->second);
}

bool Operations::is_through(std::int64_t comm, std::uint64_t seq) const {
  return ended(comm).value_or(0) > seq;
}

bool Operations::is_not_through(std::int64_t comm, std::uint64_t seq) const {
  return has_all_ends(rank_) && !through_.empty() && ended(comm).value_or(0) == seq;
}

ChannelOfJob channel_of_job(std::size_t communicator, const Member& me, const ChannelKey& key) {
  if (key.peer == ChannelKey::kEverybody) return {communicator, -1, -1};
  return key.send ? ChannelOfJob{communicator, me.comm->rank, key.peer}
                  : ChannelOfJob{communicator, key.peer, me.comm->rank};
}

Fact fact_of(const Operation& o, const Operations& of, const read::Process& who,
             const read::Process& other) {
  const auto joins = [&](const Operation& its) {
    return its.group == o.group && its.thread == o.thread;
  };
  const auto group = o.group == 0 ? 0 : std::ranges::count_if(of.all, joins);
  const auto bytes = [&](std::uint64_t seq) {
    const Operation* its = of.find(o.channel(), seq);
    return its == nullptr ? std::nullopt : std::optional(Bytes{its->bytes});
  };
  return {Say::end_of_message,
          {{"who", &who},
           {"function", o.function},
           {"seq", o.seq},
           {"send", o.send},
           {"other", &other},
           {"bytes", Bytes{o.bytes}},
           {"at", Time{who.header.base_time_ns + o.ts_ns}},
           {"group", group > 1 ? std::optional(static_cast<std::uint64_t>(group)) : std::nullopt},
           {"before", o.seq == 0 ? std::nullopt : bytes(o.seq - 1)},
           {"then", bytes(o.seq + 1)}}};
}

}  // namespace tprof::diagnose
