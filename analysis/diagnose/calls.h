// Describes and compares single calls of collectives, and finds them in the lines.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/diagnosis.h"

namespace tprof::diagnose {

// Tells what a rank called: "ncclBroadcast of 16,544 float32, root 3" (report/ has the words).
Fact fact_of(const read::Event& event);
// The same, and when.
Fact fact_of(const read::Event& event, const read::Process& process);

// True if two ranks' calls of one collective match.
bool alike(const read::Event& a, const read::Event& b);
// Calls that match have equal fingerprints.
std::uint64_t fingerprint(const read::Event& event);

std::int64_t called_ns(const read::Event& event, const read::Process& process);  // CLOCK_REALTIME

// Returns the innermost line of the program's own Python that made the call, "train.py:155 step".
// Nothing where that is not known: TPROF_CALLSITE=python records it. Reads the rank's file.
std::optional<std::string> made_at(const read::Event& event, const read::Process& process,
                                   const read::Traces& traces);

// Returns the trace that holds the process; null if it is none of these.
const read::Trace* trace_of(const read::Process& process, const read::Traces& traces);

// Calls see(event) for each collective in [from, to) that has a line, in the file's order.
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
