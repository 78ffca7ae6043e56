// Ranks that stand in one collective with different arguments, or in another than those whose call
// returned: the ledgers hold only what returned.
#pragma once

#include <vector>

#include "diagnose/agreement.h"
#include "diagnose/line_facts.h"
#include "diagnose/problem.h"

namespace tprof::diagnose {

// Of communicators whose ranks did the same so far. Adds what it finds to the agreements too.
void open_mismatches(const std::vector<Communicator>& communicators, const Facts& facts,
                     const read::Traces& traces, std::vector<Agreement>& agreements,
                     std::vector<Problem>& found);

}  // namespace tprof::diagnose
