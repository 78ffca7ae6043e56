// Single calls of collectives: how they are told, compared, and found again in the lines.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/diagnosis.h"

namespace tprof::diagnose {

// "ncclBroadcast of 16,544 float32, root 3": equal where two ranks' calls of one collective go
// together.
std::string what_of(const read::Event& event);

// The same, ", at 2026-01-01 12:00:00.123 UTC".
std::string describe(const read::Event& event, const read::Process& process);

// Calls see(event) for each line of one of these collectives that returned, in the file's order.
void each_collective(const Member& member, std::uint64_t from, std::uint64_t to,
                     const read::Traces& traces,
                     const std::function<void(const read::Event&)>& see);

// What somebody called as a collective of a communicator.
struct KnownCall {
  const Member* by = nullptr;
  read::Event event;
};

// Reads a few files, for calls behind which their ranks have called others.
class CallFinder {
 public:
  explicit CallFinder(const Case& c) : case_(c) {}

  // By the first of these, all of whom came to it, that has a line of it.
  std::optional<KnownCall> find(const Members& callers, std::uint64_t seq);

 private:
  static constexpr int kMaxFilesRead = 16;
  const Case& case_;
  int files_read_ = 0;
};

}  // namespace tprof::diagnose
