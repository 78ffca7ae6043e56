#include "why/messages.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "stats/timed_calls.h"

namespace tprof::why {
namespace {

constexpr std::uint64_t kRoom = std::uint64_t{1} << 20;

class Ends {
 public:
  Ends(const read::Process& rank, std::uint64_t stride) : rank_(rank), stride_(stride) {}
  const read::Process& rank() const { return rank_; }

  void call(const read::Event& e) {
    if (e.unfinished || e.captured || e.failed) return;
    if (e.group != 0) return in_group(e);
    if (ours(e)) calls_.call(e);
  }
  void device_time(const read::DeviceTime& t) {
    if (!t.comm || what_timed(t) == TimeOf::other) return;
    if (t.calls == 1) calls_.time(t);
    if (times_.size() >= kRoom) return;
    times_[{t.ts_ns - t.queued_ns, t.thread}] = {t.ts_ns, t.ts_ns + t.dur_ns, t.calls};
  }
  void end() {
    calls_.finish();
    for (const Waiting& w : waiting_) {
      const auto group = times_.find(w.group);
      if (group != times_.end() && !w.others) ++group->second.own;
    }
    for (const Waiting& w : waiting_) {
      const auto group = times_.find(w.group);
      if (group == times_.end() || !w.others || w.end.seq % stride_ != 0) continue;
      const Time& t = group->second;
      add(w.end, w.group.first, t, t.calls == 1 ? 0 : t.calls - std::min(t.calls, t.own));
    }
    waiting_ = {};
    times_ = {};
  }

  std::vector<MessageEnd> ends{};

 private:
  // A group's time is known by when its first call on the stream began, and on which thread.
  using Begun = std::pair<std::int64_t, std::int64_t>;
  struct Waiting {
    Begun group;
    MessageEnd end;
    bool others;
  };
  struct Time {
    std::int64_t from_ns;
    std::int64_t to_ns;
    std::uint64_t calls;
    std::uint64_t own = 0;  // of them, for which nobody else has to come
  };

  static bool is_message(const read::Event& e) {
    return e.bucket == Bucket::P2P && (e.name == "ncclSend" || e.name == "ncclRecv") &&
           e.numbered && e.comm && e.peer;
  }
  bool ours(const read::Event& e) const {
    return is_message(e) && e.bytes != 0 && e.seq % stride_ == 0;
  }
  void in_group(const read::Event& e) {
    auto& [group, begun] = groups_[e.thread];
    if (std::exchange(group, e.group) != e.group) begun.clear();
    const auto first = begun.try_emplace(e.stream.value_or(-1), e.ts_ns).first->second;
    if (!is_message(e) || waiting_.size() >= kRoom) return;
    const read::Comm* comm = read::comm_of(rank_, *e.comm);
    const bool to_itself = comm != nullptr && comm->known() && comm->rank == *e.peer;
    // Nobody else has to come for a message to oneself, or of no bytes.
    waiting_.push_back({{first, e.thread}, end_of(e), !to_itself && e.bytes != 0});
  }
  static MessageEnd end_of(const read::Event& e) {
    return {.comm = *e.comm,
            .peer = *e.peer,
            .seq = e.seq,
            .size_class = static_cast<std::uint8_t>(tprof::bytes_class(e.bytes | 1)),
            .sends = e.name == "ncclSend"};
  }
  void add(MessageEnd end, std::int64_t called_ns, const Time& t, std::uint64_t of_group) {
    if (ends.size() >= kRoom) return;
    end.called_ns = called_ns;
    end.from_ns = t.from_ns;
    end.to_ns = t.to_ns;
    end.of_group = of_group;
    ends.push_back(end);
  }
  void add(const read::Event& e, const read::DeviceTime* t) {
    if (t == nullptr) return;
    add(end_of(e), t->ts_ns - t->queued_ns, {t->ts_ns, t->ts_ns + t->dur_ns, 1}, 0);
  }

  const read::Process& rank_;
  std::uint64_t stride_;
  std::vector<Waiting> waiting_;
  std::map<Begun, Time> times_;
  // By thread, its last group, and when that began on each stream.
  std::map<std::int64_t, std::pair<std::int64_t, std::map<std::int64_t, std::int64_t>>> groups_;
  stats::TimedCalls calls_{[this](const read::Event& e, const read::DeviceTime* t) { add(e, t); }};
};

}  // namespace

Messages::Messages(const run::Lines& lines) {
  std::uint64_t calls = 0;
  std::set<const read::Process*> callers;
  for (const read::Process* p : lines.job().processes) {
    for (const read::Row& row : read::rows_of(*p)) {
      if (row.bucket != Bucket::P2P) continue;
      calls = read::saturated_sum(calls, row.amounts.calls);
      callers.insert(p);
    }
  }
  std::uint64_t stride = 1;
  while (calls / stride > kRoom) stride *= 2;
  if (callers.empty()) return;
  lines.each(
      [&](const read::Process& rank) {
        return callers.contains(&rank) ? std::optional<Ends>(std::in_place, rank, stride)
                                       : std::nullopt;
      },
      [&](Ends& of) {
        if (!of.ends.empty()) ends_[&of.rank()] = std::move(of.ends);
      });
  join();
}

void Messages::join() {
  std::map<std::string, std::size_t> comms;  // numbers for ids
  // By communicator, the ranks of sender and receiver on it, and the number.
  using Key = std::tuple<std::size_t, std::int64_t, std::int64_t, std::uint64_t>;
  std::map<Key, Message> found;
  for (const auto& [rank, ends] : ends_) {
    for (const MessageEnd& end : ends) {
      const auto comm = rank->comms.find(end.comm);
      if (comm == rank->comms.end() || !comm->second.known()) continue;
      const std::int64_t me = comm->second.rank;
      const auto [from, to] = end.sends ? std::pair(me, end.peer) : std::pair(end.peer, me);
      const std::size_t number =
          comms.try_emplace(std::string(comm->second.id), comms.size()).first->second;
      Message& m = found[{number, from, to, end.seq}];
      (end.sends ? m.sender : m.receiver) = rank;
      (end.sends ? m.sent : m.received) = &end;
    }
  }
  for (const auto& [key, m] : found) {
    if (m.sent != nullptr && m.received != nullptr && m.sender != m.receiver) all_.push_back(m);
  }
}

}  // namespace tprof::why
