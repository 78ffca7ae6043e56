// Where a job that did not end in order stood still: who waits for whom, and who for nobody.
//
// NCCL calls return when the work is enqueued. So this is the host's view: who called a collective
// and who never did, and which calls did not come back. Where every rank has called, the device or
// the network is the place to look.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnose/agreement.h"
#include "diagnose/line_facts.h"

namespace tprof::diagnose {

struct HangOptions {
  // A call of a process that still runs is stuck after this long, and so is a rank that is behind.
  std::int64_t stuck_after_ns = 30'000'000'000;
};

inline constexpr const char* kEveryRankCame = "every rank came: nobody is missing";

// One finding per place at which the job is held up. Kinds: `hang` (error): calls wait, or waited
// when the job ended, for ranks that never came, for each other, or for the device. `stopped`
// (warning): ranks ended, the others got further.
std::vector<Problem> hangs(const match::Job& job, const std::vector<Communicator>& communicators,
                           const Facts& facts, const read::Traces& traces,
                           const HangOptions& options);

}  // namespace tprof::diagnose
