// Describes, compares and finds single calls of collectives.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "check/diagnosis.h"

namespace tprof::check {

// Describes a call: "ncclBroadcast of 16,544 float32, root 3" (report/ has the words).
Fact fact_of(const read::Event& event);
// The same, with the time.
Fact fact_of(const read::Event& event, const read::Process& process);

// Calls that match have equal fingerprints.
std::uint64_t fingerprint(const read::Event& event);

std::int64_t called_ns(const read::Event& event,
                       const read::Process& process);  // CLOCK_REALTIME

// Returns the innermost line of the program's own Python code that made the call, "train.py:155
// step". It is known with TPROF_CALLSITE=python only.
std::optional<std::string> made_at(const read::Event& event, const read::Process& process,
                                   const Case& c);

// Calls see(event) for each collective in [from, to) that has a line, in file order.
void each_collective(const Member& member, std::uint64_t from, std::uint64_t to, const Case& c,
                     const std::function<void(const read::Event&)>& see);

// A rank's call of a given collective.
struct KnownCall {
  const Member* by = nullptr;
  read::Event event;
};

// Returns the call of one of these members that has a line for it. All of them must have made it.
// `looks`: how many searches for calls that are not the last of their rank are still allowed.
std::optional<KnownCall> find_call(const Members& callers, std::uint64_t seq, const Case& c,
                                   int& looks);
inline constexpr int kMostLooks = 16;

}  // namespace tprof::check
