// The calls that meet each other by their numbers: the collectives of a communicator, or the
// messages from one of its ranks to another, as the lines of each of them tell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "check/agreement.h"
#include "check/finding.h"
#include "check/rank_calls.h"

namespace tprof::check {

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
