// The first collective that two ranks did not do alike, from their lines.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnose/agreement.h"
#include "diagnose/line_facts.h"

namespace tprof::diagnose {

struct FirstDifference {
  const Member* mine = nullptr;    // of those that part, one whose lines tell most
  const Member* theirs = nullptr;  // and of the others
  // What both did, up to it; then one side or the other may have no more.
  std::vector<read::Event> before;
  std::uint64_t seq = 0;
  std::vector<read::Event> here;   // mine, from seq on
  std::vector<read::Event> there;  // theirs
  bool found = false;
  std::string coverage;  // why nothing was found, or why an earlier one may be; empty: certain
};

FirstDifference first_difference(const Split& split, const Facts& facts,
                                 const read::Traces& traces);

// Completes the finding of a split with what the lines tell.
void name_operation(Problem& problem, const Split& split, const FirstDifference& difference);

// Whether two ranks' calls of one collective go together.
bool same_call(const read::Event& a, const read::Event& b);

// "ncclBroadcast of 16,544 float32, root 3, at 2026-01-01 12:00:00.123 UTC"
std::string describe(const read::Event& event, const read::Process& process);

// Calls of one communicator on one rank whose number is in [from, to), in that order.
std::vector<read::Event> collectives_between(const Member& member, std::uint64_t from,
                                             std::uint64_t to, const read::Traces& traces);

}  // namespace tprof::diagnose
