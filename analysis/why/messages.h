// When the other end of a send or receive came to it: both ends' times on the device, put together.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "collect/passes.h"
#include "diagnose/host_clocks.h"

namespace tprof::why {

// A send or receive that was timed alone. Its times are those of its rank.
struct MessageEnd {
  std::int64_t comm = 0;
  std::int64_t peer = 0;
  std::uint64_t seq = 0;
  std::int64_t called_ns = 0;
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
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
  explicit Messages(const job::Job& job);

  std::uint64_t stride() const { return stride_; }
  // Valid once the lines are read.
  const std::vector<Message>& all() const { return all_; }

 private:
  friend std::shared_ptr<const Messages> want_messages(collect::Passes& passes);
  void join(const job::Job& job, const collect::Lines& lines);

  std::uint64_t stride_ = 1;
  std::map<const read::Process*, std::vector<MessageEnd>> ends_;
  std::vector<Message> all_;
};

// The messages of the lines of the next pass.
std::shared_ptr<const Messages> want_messages(collect::Passes& passes);

}  // namespace tprof::why
