#include "why/messages.h"

#include <algorithm>
#include <bit>
#include <string>
#include <tuple>
#include <utility>

#include "stats/timed_calls.h"

namespace tprof::why {
namespace {

constexpr std::uint64_t kRoom = std::uint64_t{1} << 20;

class Ends : public collect::Collector {
 public:
  Ends(const read::Process& rank, std::uint64_t stride) : Collector(rank), stride_(stride) {}

  void call(const read::Event& e) override {
    if (e.unfinished || e.captured || e.failed) return;
    if (e.group != 0) return in_group(e);
    if (ours(e)) calls_.call(e);
  }
  bool wants_times() const override { return true; }
  void device_time(const read::DeviceTime& t) override {
    if (!t.comm || what_timed(t) == TimeOf::other) return;
    if (t.calls == 1) calls_.time(t);
    if (times_.size() >= kRoom) return;
    times_[{t.ts_ns - t.queued_ns, t.thread}] = {t.ts_ns, t.ts_ns + t.dur_ns, t.calls};
  }
  void end() override {
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
  void state(team::Archive& archive) override { archive(ends); }

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

  std::uint64_t stride_;
  std::vector<Waiting> waiting_;
  std::map<Begun, Time> times_;
  // By thread, its last group, and when that began on each stream.
  std::map<std::int64_t, std::pair<std::int64_t, std::map<std::int64_t, std::int64_t>>> groups_;
  stats::TimedCalls calls_{[this](const read::Event& e, const read::DeviceTime* t) { add(e, t); }};
};

}  // namespace

Messages::Messages(const job::Job& job) {
  std::uint64_t calls = 0;
  for (const read::Process* p : job.processes) {
    for (const read::Row& row : read::rows_of(*p)) {
      if (row.bucket == Bucket::P2P) calls = read::saturated_sum(calls, row.amounts.calls);
    }
  }
  while (calls / stride_ > kRoom) stride_ *= 2;
}

void Messages::join(const job::Job& job, const collect::Lines& lines) {
  for (const read::Process* p : job.processes) {
    if (const Ends* its = lines.of<Ends>(p); its != nullptr && !its->ends.empty()) {
      ends_[p] = its->ends;
    }
  }
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

std::shared_ptr<const Messages> want_messages(collect::Passes& passes) {
  const auto messages = std::make_shared<Messages>(passes.job());
  const auto calls_any = [](const read::Process& p) {
    return std::ranges::any_of(read::rows_of(p),
                               [](const read::Row& row) { return row.bucket == Bucket::P2P; });
  };
  passes.want(
      [messages, calls_any](const read::Process& rank, collect::Collectors& all) {
        if (calls_any(rank)) collect::want<Ends>(rank, all, messages->stride());
      },
      [messages, &passes](const collect::Lines& lines) { messages->join(passes.job(), lines); });
  return messages;
}

}  // namespace tprof::why
