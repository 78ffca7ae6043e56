// The collectives and messages that a rank called last, in the order in which it called them.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "diagnose/agreement.h"
#include "diagnose/facts.h"
#include "read/events.h"

namespace tprof::diagnose {

// Sends or receives of one rank with one other; its collectives.
struct ChannelKey {
  static constexpr std::int64_t kEverybody = -1;

  std::int64_t comm = 0;
  std::int64_t peer = kEverybody;
  bool send = false;

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
  // False where some ranks go on before all have called it, as does who sends a message.
  bool all_wait() const;
};

// True if the ends of all calls are known that the process's device is through with.
bool has_all_ends(const read::Process& process);

// Keeps the last operations of a process: of one that closed its messages only, as collectives are
// compared by the ledgers.
struct Operations {
  // `most`: how many are kept.
  explicit Operations(const read::Process& rank, std::size_t most = 0);
  void call(const read::Event& e);
  void last_call(const read::Event& e);
  void device_time(const read::DeviceTime& t);
  void end();

  // How many collectives of the communicator the device has ended, as far as its times tell.
  std::optional<std::uint64_t> ended(std::int64_t comm) const;
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
  std::vector<Operation> all;      // of each thread in the order of time
  std::set<std::int64_t> refused;  // communicators with calls that were, of any kind

 private:
  const read::Process& rank_;
  // By communicator, the number behind the last that has a time: they run one after the other.
  std::map<std::int64_t, std::uint64_t> through_;
  std::size_t most_;
  std::vector<Operation> of_ring_;  // they may have lines of their own, which say more
  std::size_t oldest_ = 0;          // in `all`, once that is full
};

// The messages from one rank of a communicator of the job to another, or its collectives (-1, -1).
using ChannelOfJob = std::tuple<std::size_t, std::int64_t, std::int64_t>;
ChannelOfJob channel_of_job(std::size_t communicator, const Member& me, const ChannelKey& key);

// Says which message it was, and what came before and behind it between the two.
Fact fact_of(const Operation& message, const Operations& of, const read::Process& who,
             const read::Process& other);

}  // namespace tprof::diagnose
