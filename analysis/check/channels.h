// The calls that meet each other by their numbers: the collectives of a communicator, or the
// messages from one of its ranks to another, as the lines of each of them tell.
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

// The calls of a rank, as its lines tell of them: the last collectives and messages in the order in
// which it called them, and where it stood when its trace ended.

// Sends or receives of one rank with one other; its collectives.
struct ChannelKey {
  static constexpr std::int64_t kEverybody = -1;

  std::int64_t comm = 0;
  std::int64_t peer = kEverybody;
  bool send = false;

  bool message() const { return peer != kEverybody; }
  auto operator<=>(const ChannelKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

// A call of a communicator that has this number in its process. A message is what one ncclSend and
// one ncclRecv are the ends of: NCCL lets the first send of a rank to another meet the first
// receive there, and so on.
struct Operation {
  static constexpr std::int32_t kNoStream = -1;

  text::Kept function{};
  std::int64_t ts_ns = 0;
  std::uint64_t bytes = 0;
  std::uint64_t seq = 0;  // of a message: among those to, or from, this peer
  std::int32_t comm = 0;
  std::int32_t peer = ChannelKey::kEverybody;
  std::int32_t thread = 0;
  std::int32_t stream = kNoStream;  // 0: the default stream
  std::int32_t group = 0;           // whose End enqueued it; 0: none
  std::uint32_t print = 0;          // equal for calls that match
  bool send = false;

  bool message() const { return peer != ChannelKey::kEverybody; }
  ChannelKey channel() const { return {comm, peer, send}; }
  bool joins(const Operation& other) const {  // the group of that one
    return group != 0 && group == other.group && thread == other.thread;
  }
  // False where some ranks go on before all have called it, as does who sends a message.
  bool all_wait() const;
};

// True if the ends of all calls are known that the process's device is through with.
bool has_all_ends(const read::Process& process);

struct RankCalls {
  // Keeps `most` operations: of a process that closed its messages only, as collectives are
  // compared by the ledgers.
  explicit RankCalls(const read::Process& rank, std::size_t most = 0);
  void call(const read::Event& e);
  void launch(const read::Event& e) { remember(e); }
  void last_call(const read::Event& e);
  void life(const read::LifeCall& c);
  void range(const read::Range& range);
  void device_time(const read::DeviceTime& t);
  void end();

  bool knows_last() const;  // the ring tells, or all that was called has a line
  // True if the device is through with this collective, or is not: then it is through with what
  // came before.
  bool is_through(std::int64_t comm, std::uint64_t seq) const;
  bool is_not_through(std::int64_t comm, std::uint64_t seq) const;

  // The collectives of a communicator, or the messages to or from one peer, captured ones too.
  struct Channel {
    std::uint64_t calls = 0;  // the number behind the last
    std::uint64_t first = 0;  // from here on each is in `all`, if none is captured
    bool captured = false;    // some are, which run when their graph is launched
    bool in_ring = false;     // the ring has the last, so that no line can be missing behind it
  };
  // How many calls there were; nullopt where some that are missing may be of it.
  std::optional<std::uint64_t> calls(const ChannelKey& key) const;
  // Null: it is not known.
  const Operation* find(const ChannelKey& key, std::uint64_t seq) const;

  std::map<ChannelKey, Channel> channels;
  std::vector<Operation> all;  // of each thread in the order of time

  // The calls of one communicator.
  struct OnComm {
    // The numbers of collectives that have a line and returned: mostly one after the other.
    std::uint64_t first = UINT64_MAX;
    std::uint64_t end = 0;
    std::uint64_t lines = 0;
    std::optional<std::int64_t> begun_ns{};  // when the first was called
    std::optional<read::Event> last{};       // collective, of a process that did not close
    bool refused = false;                    // a call was, of any kind
    // How many the device has ended, as far as its times tell: they run one after the other.
    std::optional<std::uint64_t> ended{};

    bool may_have(std::uint64_t seq) const { return seq >= first && seq < end; }
  };
  std::map<std::int64_t, OnComm> comms;
  const OnComm& on(std::int64_t comm) const;

  std::vector<read::Event> open;            // calls that never returned
  std::vector<read::LifeCall> open_life;    // those of a communicator's life
  std::vector<read::LifeCall> failed_life;  // those that were refused, the first few
  std::vector<read::Range> ranges;          // NVTX ranges that were pushed and not popped, of a
                                            // thread outermost first
  std::optional<read::Event> last;          // the call, launch or such a call that began last

 private:
  void remember(const read::Event& e);

  const read::Process& rank_;
  std::size_t most_;
  std::size_t oldest_ = 0;          // in `all`, once that is full
  bool from_ring_ = false;          // which tells what it did last, whatever has lines
  std::vector<Operation> of_ring_;  // they may have lines of their own, which say more
};

struct Case;

// A rank's part.
struct ChannelEnd {
  const Member* member = nullptr;
  const RankCalls* calls = nullptr;
  ChannelKey key{};
  std::vector<const Operation*> all{};  // those that are known, by number

  const RankCalls::Channel& numbers() const;
  // How many calls it made; nullopt where some that are missing may be of it.
  std::optional<std::uint64_t> made() const { return calls->calls(key); }
  const Operation* number(std::uint64_t n) const;  // null: it is not known
  std::int64_t called_ns(const Operation& call) const {
    return member->process->header.base_time_ns + call.ts_ns;
  }
};

struct Channel {
  std::size_t communicator = 0;    // of Case::communicators
  bool messages = false;           // the first end sends, the second one receives
  std::vector<ChannelEnd> ends{};  // of whoever has lines
};

// By communicator: its collectives, then the messages between each two ranks that both have lines.
std::vector<Channel> channels_of(const Case& c);

// Says which message it was, and what came before and behind it between the two.
Fact fact_of(const ChannelEnd& end, const Operation& message, const read::Process& other);

}  // namespace tprof::check
