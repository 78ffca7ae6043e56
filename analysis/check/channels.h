// Matches calls by their numbers: the collectives of a communicator, and the messages from one of
// its ranks to another.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "check/agreement.h"
#include "check/finding.h"
#include "read/events.h"

namespace tprof::check {

// A rank's calls according to its lines: the last collectives and messages in the order of the
// calls, and where it stood when its trace ended.

// Identifies a rank's sends or receives with one peer, or its collectives.
struct ChannelKey {
  static constexpr std::int64_t kEverybody = -1;

  std::int64_t comm = 0;
  std::int64_t peer = kEverybody;
  bool send = false;

  bool message() const { return peer != kEverybody; }
  auto operator<=>(const ChannelKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

// A collective, or one end of a message. An ncclSend and an ncclRecv are the two ends: NCCL matches
// a rank's first send to another with the first receive there, and so on.
struct Operation {
  static constexpr std::int32_t kNoStream = -1;

  text::Kept function{};
  std::int64_t ts_ns = 0;
  std::uint64_t bytes = 0;
  std::uint64_t seq = 0;  // messages are numbered by peer and direction
  std::int32_t comm = 0;
  std::int32_t peer = ChannelKey::kEverybody;
  std::int32_t thread = 0;
  std::int32_t stream = kNoStream;  // 0: the default stream
  std::int32_t group = 0;           // whose ncclGroupEnd enqueued it; 0: none
  std::uint32_t print = 0;          // fingerprint, equal for calls that match
  bool send = false;
  bool ended = false;  // on the device, as a later call of its stream did

  bool message() const { return peer != ChannelKey::kEverybody; }
  ChannelKey channel() const { return {comm, peer, send}; }
  bool joins(const Operation& other) const {  // its group
    return group != 0 && group == other.group && thread == other.thread;
  }
  // False if some ranks go on before all have called it, as a message's sender does.
  bool all_wait() const;
};

// True if the ends of all calls that the device finished are known.
bool has_all_ends(const read::Process& process);

struct RankCalls {
  // Keeps `most` operations. If the process closed, only messages: ledgers compare the collectives.
  explicit RankCalls(const read::Process& rank, std::size_t most = 0);
  void call(const read::Event& e);
  void launch(const read::Event& e) { remember(e); }
  void last_call(const read::Event& e);
  void life(const read::LifeCall& c);
  void range(const read::Range& range);
  void device_time(const read::DeviceTime& t);
  void end();

  bool knows_last() const;                         // the ring has it, or every call has a line
  std::optional<std::int64_t> entered_ns() const;  // the last call that never returned
  // True if the device is known to have finished this collective; to have finished only those
  // before it.
  bool is_through(std::int64_t comm, std::uint64_t seq) const;
  bool is_not_through(std::int64_t comm, std::uint64_t seq) const;

  // The collectives of a communicator, or the messages to or from one peer, including captured
  // ones.
  struct Channel {
    std::uint64_t calls = 0;  // the last number + 1
    std::uint64_t first = 0;  // all from this number on are in `all`, if none is captured
    bool captured = false;    // some were captured, and run when their graph is launched
    bool in_ring = false;     // the ring has the last one, so no later line can be missing
  };
  // Returns how many calls there were; nullopt if missing lines may belong here.
  std::optional<std::uint64_t> calls(const ChannelKey& key) const;
  // Null: unknown.
  const Operation* find(const ChannelKey& key, std::uint64_t seq) const;

  std::map<ChannelKey, Channel> channels;
  std::vector<Operation> all;  // by thread, then time

  // A rank's calls on one communicator.
  struct OnComm {
    // The range of numbers of returned collectives with lines, usually without gaps.
    std::uint64_t first = UINT64_MAX;
    std::uint64_t end = 0;
    std::uint64_t lines = 0;
    std::optional<std::int64_t> begun_ns{};  // when the first one was called
    std::optional<read::Event> last{};       // collective; only if the process did not close
    bool refused = false;                    // some call of any kind was refused
    // How many collectives the device has ended, according to its times: they run in order.
    std::optional<std::uint64_t> ended{};

    bool may_have(std::uint64_t seq) const { return seq >= first && seq < end; }
  };
  std::map<std::int64_t, OnComm> comms;
  const OnComm& on(std::int64_t comm) const;

  std::vector<read::Event> open;            // calls that never returned
  std::vector<read::LifeCall> open_life;    // that create or end a communicator
  std::vector<read::LifeCall> failed_life;  // the first few that were refused
  std::vector<read::Range> ranges;          // NVTX ranges pushed and not popped, by thread
                                            // from the outermost
  std::optional<read::Event> last;          // the call, launch or life call that began last

 private:
  void remember(const read::Event& e);

  const read::Process& rank_;
  std::size_t most_;
  std::size_t oldest_ = 0;          // index in `all`, once that is full
  bool from_ring_ = false;          // the ring told what it did last
  std::vector<Operation> of_ring_;  // they may also have lines, which say more
  // By stream: when the host called the last call that ended, or the first one of its group.
  std::map<std::int64_t, std::int64_t> ended_{};
};

struct Case;

// One rank's end of a channel.
struct ChannelEnd {
  const Member* member = nullptr;
  const RankCalls* calls = nullptr;
  ChannelKey key{};
  std::vector<const Operation*> all{};  // known ones, by number

  const RankCalls::Channel& numbers() const;
  // Returns how many calls it made; nullopt if missing lines may belong here.
  std::optional<std::uint64_t> made() const { return calls->calls(key); }
  const Operation* number(std::uint64_t n) const;  // null: unknown
  std::int64_t called_ns(const Operation& call) const {
    return member->process->header.base_time_ns + call.ts_ns;
  }
};

struct Channel {
  std::size_t communicator = 0;    // index into Case::communicators
  bool messages = false;           // the first end sends, the second one receives
  std::vector<ChannelEnd> ends{};  // of ranks that have lines

  // False if equal numbers may mean different messages. In dumps messages are numbered from the
  // first that has not ended: if one end has more, it may also be one that the other's device
  // ended.
  bool numbered() const;
};

// By communicator: its collectives, then the messages of each pair of ranks that both have lines.
std::vector<Channel> channels_of(const Case& c);

// Describes a message with its neighbours between the same two ranks.
Fact fact_of(const ChannelEnd& end, const Operation& message, const read::Process& other);

}  // namespace tprof::check
