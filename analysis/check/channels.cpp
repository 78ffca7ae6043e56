#include "check/channels.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "check/diagnosis.h"

namespace tprof::check {
namespace {

// A communicator of the job, and the ranks on it that send and receive; -1: collectives.
using Name = std::tuple<std::size_t, std::int64_t, std::int64_t>;

ChannelEnd end_of(const Member& m, const ChannelKey& key, const Case& c) {
  return {.member = &m, .calls = &c.calls(*m.process), .key = key};
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

std::vector<Channel> channels_of(const Case& c) {
  std::map<Name, Channel> channels;
  for (const read::Process* p : c.job.processes) {
    std::map<ChannelKey, std::pair<Channel*, std::size_t>> mine;  // and which of its ends
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
      // They are in no order where threads share a communicator, and twice in a damaged file.
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

}  // namespace tprof::check
