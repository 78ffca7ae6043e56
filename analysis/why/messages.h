// When the other end of a send or receive came to it: both ends' times on the device, put together.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "diagnose/host_clocks.h"
#include "interpose/format/record.h"
#include "read/events.h"
#include "run/lines.h"

namespace tprof::why {

// The call that a line of a device time belongs to. `group`: all of a group's calls on a stream.
enum class TimeOf : std::uint8_t { send, receive, group, other };
inline TimeOf what_timed(const read::DeviceTime& t) {
  static const text::Kept kSend("ncclSend");
  static const text::Kept kReceive("ncclRecv");
  static const text::Kept kGroup(kGroupName);
  if (t.name == kGroup) return TimeOf::group;
  const bool sends = t.name == kSend;
  if (!sends && t.name != kReceive) return TimeOf::other;
  if (t.calls > 1) return TimeOf::group;
  return sends ? TimeOf::send : TimeOf::receive;
}

// A send or receive. Its times are those of its rank: its own, or those of its group.
struct MessageEnd {
  std::int64_t comm = 0;
  std::int64_t peer = 0;
  std::uint64_t seq = 0;
  std::int64_t called_ns = 0;
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  std::uint64_t of_group = 0;  // so many calls of its group wait for others; 0: timed alone
  std::uint8_t size_class = 0;
  bool sends = false;
};

// A message of which both ends are known.
struct Message {
  const read::Process* sender = nullptr;
  const read::Process* receiver = nullptr;
  const MessageEnd* sent = nullptr;
  const MessageEnd* received = nullptr;
};

// Keeps at most about a million ends: of more, every second message is left out, and so on.
class Messages {
 public:
  explicit Messages(const run::Lines& lines);

  const std::vector<Message>& all() const { return all_; }

 private:
  void join();

  std::map<const read::Process*, std::vector<MessageEnd>> ends_;
  std::vector<Message> all_;
};

}  // namespace tprof::why
