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
    if (ours(e)) calls_.call(e);
  }
  bool wants_times() const override { return true; }
  void device_time(const read::DeviceTime& t) override {
    // Calls of a group that share one time may wait for several ranks.
    if (t.calls == 1 && t.comm && (t.name == "ncclSend" || t.name == "ncclRecv")) calls_.time(t);
  }
  void end() override { calls_.finish(); }
  void state(team::Archive& archive) override { archive(ends); }

  std::vector<MessageEnd> ends{};

 private:
  bool ours(const read::Event& e) const {
    return e.bucket == Bucket::P2P && (e.name == "ncclSend" || e.name == "ncclRecv") &&
           e.numbered && e.comm && e.peer && e.bytes != 0 && e.seq % stride_ == 0;
  }
  void add(const read::Event& e, const read::DeviceTime* t) {
    if (t == nullptr || ends.size() >= kRoom) return;
    ends.push_back({.comm = *e.comm,
                    .peer = *e.peer,
                    .seq = e.seq,
                    .called_ns = t->ts_ns - t->queued_ns,
                    .from_ns = t->ts_ns,
                    .to_ns = t->ts_ns + t->dur_ns,
                    .size_class = static_cast<std::uint8_t>(std::bit_width(e.bytes) - 1),
                    .sends = e.name == "ncclSend"});
  }

  std::uint64_t stride_;
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
