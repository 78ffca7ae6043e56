// Describes and compares single calls of collectives, and finds them in the lines.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/diagnosis.h"

namespace tprof::diagnose {

// "ncclBroadcast of 16,544 float32, root 3". Two ranks' calls of one collective match if these
// texts are equal.
std::string what_of(const read::Event& event);

// The same text, followed by ", at 2026-01-01 12:00:00.123 UTC".
std::string describe(const read::Event& event, const read::Process& process);

// Calls see(event) for each returned collective in [from, to) that has a line, in the file's order.
void each_collective(const Member& member, std::uint64_t from, std::uint64_t to,
                     const read::Traces& traces,
                     const std::function<void(const read::Event&)>& see);

// A call that a rank made as a given collective of a communicator.
struct KnownCall {
  const Member* by = nullptr;
  read::Event event;
};

// Finds calls. Reads a few files, for calls that are no longer the last of their ranks.
class CallFinder {
 public:
  explicit CallFinder(const Case& c) : case_(c) {}

  // Returns the call of one of these members that has a line of it. All of them must have made it.
  std::optional<KnownCall> find(const Members& callers, std::uint64_t seq);

 private:
  static constexpr int kMaxFilesRead = 16;
  const Case& case_;
  int files_read_ = 0;
};

}  // namespace tprof::diagnose
