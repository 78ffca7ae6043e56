// Tells which collectives the devices have ended, as hosts run ahead of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "check/finding.h"

namespace tprof::check {

struct Case;
struct Communicator;
struct Member;
struct Operation;

// True if the times of all calls that the process's device ended are known.
bool has_all_times(const read::Process& process, const Case& c);

// Returns how many collectives of the communicator the member's device has ended; nullopt: unknown,
// as calls have no times or the latest times may still be missing.
std::optional<std::uint64_t> ended_by(const Member& member, const Case& c);

// A device ended a collective that other ranks had not called: their dumps are older, and were
// written while the job ran.
struct OlderDumps {
  Processes who{};  // in the job's order
  // For one of them:
  const Member* ended = nullptr;
  const Communicator* communicator = nullptr;
  std::uint64_t seq = 0;
  std::string function{};

  bool has(const read::Process* p) const { return std::ranges::find(who, p) != who.end(); }
};
OlderDumps older_dumps(const Case& c);

}  // namespace tprof::check
